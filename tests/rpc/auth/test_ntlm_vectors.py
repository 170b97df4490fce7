"""NTLM against the values that MS-NLMP 4.2.4 prints."""

import dataclasses

import pytest

from msmq_fast._native.ntlm import hmac_md5
from msmq_fast.rpc.auth.context import AuthLevel, AuthType
from msmq_fast.rpc.auth.ntlmmessages import (
    Authenticate,
    AvId,
    Challenge,
    Flags,
    NtlmV2Response,
    parse_av_pairs,
)
from msmq_fast.rpc.auth.ntlmsession import NtlmSession, ntowf_v2, rc4_key
from msmq_fast.security.nthash import nt_hash
from msmq_fast.security.users import Users
from tests.support.rpc.parties import acceptors, counting

RANDOM_SESSION_KEY = b"U" * 16
SERVER_CHALLENGE = bytes.fromhex("0123456789abcdef")
TEMP = bytes.fromhex(
    "01010000000000000000000000000000aaaaaaaaaaaaaaaa00000000"
    "02000c0044006f006d00610069006e0001000c005300650072007600650072000000000000000000"
)
PROOF = bytes.fromhex("68cd0ab851e51c96aabc927bebef6a1c")
CHALLENGE = bytes.fromhex(
    "4e544c4d53535000020000000c000c003800000033828ae20123456789abcdef00000000000000002400240044000000"
    "060070170000000f53006500720076006500720002000c0044006f006d00610069006e0001000c005300650072007600"
    "6500720000000000"
)
AUTHENTICATE = bytes.fromhex(
    "4e544c4d5353500003000000180018006c00000054005400840000000c000c00480000000800080054000000"
    "100010005c00000010001000d8000000358288e20501280a0000000f44006f006d00610069006e0055007300650072004300"
    "4f004d005000550054004500520086c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa68cd0ab851e51c96aabc927b"
    "ebef6a1c01010000000000000000000000000000aaaaaaaaaaaaaaaa0000000002000c0044006f006d00610069006e000100"
    "0c005300650072007600650072000000000000000000c5dad2544fc9799094ce1ce90bc9d03e"
)
YEAR_1601 = -11_644_473_600.0  # the examples are from then


def test_keys_and_responses() -> None:
    key = ntowf_v2(nt_hash("Password"), "User", "Domain")
    assert key.hex() == "0c868a403bfd7a93a3001ef22ef02e3f"
    assert NtlmV2Response.make_blob(0, b"\xaa" * 8, {2: TEMP[32:44], 1: TEMP[48:60]}) == TEMP
    assert hmac_md5(key, SERVER_CHALLENGE, TEMP) == PROOF
    base = hmac_md5(key, PROOF)
    assert base.hex() == "8de40ccadbc14a82f15cb0ad0de95ca3"
    assert rc4_key(base, RANDOM_SESSION_KEY).hex() == "c5dad2544fc9799094ce1ce90bc9d03e"


def test_messages_are_read_and_written() -> None:
    challenge = Challenge.parse(CHALLENGE)
    assert challenge.server_challenge == SERVER_CHALLENGE
    assert challenge.target_name == "Server"
    assert parse_av_pairs(challenge.target_info)[AvId.NB_DOMAIN_NAME] == "Domain".encode("utf-16-le")
    assert challenge.flags == 0xE28A8233
    mine = challenge.pack()
    assert mine[:48] + mine[56:] == CHALLENGE[:48] + CHALLENGE[56:]  # but for the version
    assert mine[48:56].endswith(b"\x0f")
    bare = dataclasses.replace(challenge, flags=challenge.flags & ~Flags.VERSION).pack()
    assert bare[48:56] == bytes(8)
    message = Authenticate.parse(AUTHENTICATE)
    assert (message.domain, message.user, message.workstation) == ("Domain", "User", "COMPUTER")
    assert message.nt_response == PROOF + TEMP
    assert message.session_key.hex() == "c5dad2544fc9799094ce1ce90bc9d03e"
    assert Authenticate.parse(message.pack()) == message


def test_sealed_message() -> None:
    flags = Flags(0xE28A8233)
    client = NtlmSession(flags, RANDOM_SESSION_KEY, server=False)
    plain = "Plaintext".encode("utf-16-le")
    sealed, signature = client.protect(b"", plain, b"", privacy=True)
    assert sealed.hex() == "54e50165bf1936dc996020c1811b0f06fb5f"
    assert signature.hex() == "010000007fb38ec5c55d497600000000"
    server = NtlmSession(flags, RANDOM_SESSION_KEY, server=True)
    assert server.unprotect(b"", sealed, b"", signature, privacy=True) == plain


@pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
def test_the_acceptor_takes_the_example(level: AuthLevel) -> None:
    users = Users.new(counting())
    users.add("user", uid=None, groups=[])
    users.set_password("user", "Password", counting())

    def random_bytes(size: int) -> bytes:
        return SERVER_CHALLENGE if size == 8 else bytes(size)

    context = acceptors(users, now=YEAR_1601, random_bytes=random_bytes).accept(AuthType.NTLM, level, "")
    negotiate = b"NTLMSSP\0\1\0\0\0" + (0xE2088233).to_bytes(4, "little") + bytes(24)
    answer = Challenge.parse(context.step(negotiate))
    assert answer.server_challenge == SERVER_CHALLENGE
    assert context.step(AUTHENTICATE) == b""
    assert context.complete
    assert context.caller.name == "user"
    sealed = bytes.fromhex("54e50165bf1936dc996020c1811b0f06fb5f")
    token = bytes.fromhex("010000007fb38ec5c55d497600000000")
    clear = context.unprotect(b"", sealed, b"", token, privacy=True, sign_header=False)
    assert clear.decode("utf-16-le") == "Plaintext"
