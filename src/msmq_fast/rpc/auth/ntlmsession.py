"""Keys and session security of NTLMv2 with extended session security (MS-NLMP 3.3.2, 3.4)."""

from __future__ import annotations

from typing import Final

from msmq_fast._native.crypto import RC4
from msmq_fast._native.ntlm import MessageSecurity, hmac_md5, md5
from msmq_fast.rpc.auth.context import AuthError, AuthFailure, Buffer
from msmq_fast.rpc.auth.ntlmmessages import Flags

__all__ = ["SIGNATURE_SIZE", "NtlmSession", "ntowf_v2", "rc4_key"]

SIGNATURE_SIZE: Final = 16
_SIGNING: Final = b"session key to %s signing key magic constant\0"
_SEALING: Final = b"session key to %s sealing key magic constant\0"
_TO_SERVER: Final = b"client-to-server"
_TO_CLIENT: Final = b"server-to-client"


def ntowf_v2(nt_hash: bytes, user: str, domain: str) -> bytes:
    """Return the ResponseKeyNT from the NT hash of an account, and from the user and domain names as the
    client sends them (3.3.2).
    """
    # Windows maps each character to one character, so a character with a longer upper case stays unchanged.
    upper = "".join(big if len(big := character.upper()) == 1 else character for character in user)
    return hmac_md5(nt_hash, (upper + domain).encode("utf-16-le"))


def rc4_key(key: bytes, data: bytes) -> bytes:
    """Encrypt or decrypt the session key with the key exchange key (RC4K, section 6)."""
    return RC4(key).apply(data)


def _sealing_key(flags: Flags, session_key: bytes, direction: bytes) -> bytes:
    return md5((session_key if Flags.KEY_128 in flags else session_key[:7]) + _SEALING % direction)


class NtlmSession:
    """Protects the messages of both directions, once the session key (ExportedSessionKey) is known.

    `flags` are those that both sides agreed on: EXTENDED_SESSIONSECURITY, and KEY_128 or KEY_56.
    """

    def __init__(self, flags: Flags, session_key: bytes, *, server: bool) -> None:
        outgoing, incoming = (_TO_CLIENT, _TO_SERVER) if server else (_TO_SERVER, _TO_CLIENT)
        exchange = Flags.KEY_EXCH in flags
        self._keys = _sealing_key(flags, session_key, outgoing), _sealing_key(flags, session_key, incoming)
        self._outgoing = MessageSecurity(self._keys[0], md5(session_key + _SIGNING % outgoing), exchange)
        self._incoming = MessageSecurity(self._keys[1], md5(session_key + _SIGNING % incoming), exchange)

    def protect(self, header: Buffer, stub: Buffer, trailer: Buffer, *, privacy: bool) -> tuple[bytes, bytes]:
        """Return (stub as it must be sent, signature). The signature also covers header and trailer."""
        return self._outgoing.protect(header, stub, trailer, privacy)

    def unprotect(
        self, header: Buffer, stub: Buffer, trailer: Buffer, token: Buffer, *, privacy: bool
    ) -> bytes:
        """Return the decrypted stub. Raises AuthError."""
        try:
            return self._incoming.unprotect(header, stub, trailer, token, privacy)
        except ValueError as error:
            raise AuthError(AuthFailure.SIGNATURE, f"NTLM: {error}") from None

    def protect_pdus(self, buffer: bytearray | memoryview, header_size: int, *, privacy: bool) -> None:
        """See SecurityContext.protect_pdus."""
        self._outgoing.protect_pdus(buffer, header_size, privacy)

    def unprotect_pdus(self, buffer: bytearray | memoryview, header_size: int, *, privacy: bool) -> None:
        """See SecurityContext.unprotect_pdus."""
        try:
            self._incoming.unprotect_pdus(buffer, header_size, privacy)
        except ValueError as error:
            raise AuthError(AuthFailure.SIGNATURE, f"NTLM: {error}") from None

    def make_mic(self, data: bytes) -> bytes:
        """Return the SPNEGO mechListMIC. The key stream restarts after it (MS-SPNG 3.3.5.1)."""
        mic = self._outgoing.protect(b"", data, b"", False)[1]
        self._outgoing.restart(self._keys[0])
        return mic

    def check_mic(self, data: bytes, mic: bytes) -> None:
        """Check the peer's mechListMIC. Raises AuthError."""
        self.unprotect(b"", data, b"", mic, privacy=False)
        self._incoming.restart(self._keys[1])
