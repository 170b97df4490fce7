"""Who takes part in the tests of authentication: accounts, acceptors, and PDUs to protect."""

import functools
import struct
from collections.abc import Callable
from pathlib import Path

from msmq_fast.rpc.auth.acceptors import AcceptorPolicy, Acceptors
from msmq_fast.rpc.auth.context import AuthType, SecurityContext
from msmq_fast.security.domainaccounts import DomainAccounts
from msmq_fast.security.principals import Principals
from msmq_fast.security.users import Users

NOW = 1_700_000_000.0
PASSWORD = "Pässword 1 €"  # noqa: S105
HOST = "queues.example.net"


def counting(start: int = 0) -> Callable[[int], bytes]:
    """Random bytes that are the same in every run, and different in every call."""
    calls = start

    def random_bytes(size: int) -> bytes:
        nonlocal calls
        calls += 1
        return calls.to_bytes(8, "big") * (size // 8) if size % 8 == 0 else bytes((calls & 255,)) * size

    return random_bytes


@functools.cache
def accounts() -> Users:
    """Alice, who is an operator; Müller; and Ghost, who has no password."""
    users = Users.new(counting())
    users.add("alice", uid=None, groups=["operators"])
    users.set_password("alice", PASSWORD, counting())
    users.add("Müller", uid=None, groups=[])
    users.set_password("Müller", "ß", counting())
    users.add("ghost", uid=None, groups=[])
    return users


def acceptors(
    users: Users | None = None,
    *,
    anonymous: bool = False,
    ntlm: bool = True,
    keytab: Path | None = None,
    now: float = NOW,
    random_bytes: Callable[[int], bytes] | None = None,
    domain: DomainAccounts | None = None,
) -> Acceptors:
    known = users if users is not None else accounts()
    principals = Principals(lambda: known, own_uid=0, domain=domain)
    policy = AcceptorPolicy(ntlm=ntlm, anonymous=anonymous, keytab=keytab)
    return Acceptors(policy, principals, HOST, lambda: now, random_bytes or counting(1000))


def pdu(
    stub: bytes, token_size: int, *, auth_type: int = AuthType.NTLM, big_endian: bool = False
) -> bytearray:
    """A response with its sec_trailer and room for a token, by hand (C706 12.6)."""
    order = ">" if big_endian else "<"
    drep = b"\0\0\0\0" if big_endian else b"\x10\0\0\0"
    size = 24 + len(stub) + 8 + token_size
    head = struct.pack(f"{order}BBBB4sHHI", 5, 0, 2, 3, drep, size, token_size, 7)
    head += struct.pack(f"{order}IHBB", len(stub), 0, 0, 0)
    trailer = struct.pack(f"{order}BBBBI", auth_type, 6, 0, 0, 1)
    return bytearray(head + stub + trailer + bytes(token_size))


def parts(data: bytes | bytearray, token_size: int) -> tuple[bytes, bytes, bytes, bytes]:
    """Header, stub, sec_trailer and token of such a PDU."""
    end = len(data) - token_size
    return bytes(data[:24]), bytes(data[24 : end - 8]), bytes(data[end - 8 : end]), bytes(data[end:])


def shake_hands(initiator: SecurityContext, acceptor: SecurityContext) -> list[bytes]:
    """Pass the tokens on until both are done; what was said."""
    said = []
    token = initiator.step(b"")
    while not (initiator.complete and acceptor.complete):
        said.append(token)
        answer = acceptor.step(token)
        if answer or not initiator.complete:
            said.append(answer)
            token = initiator.step(answer)
    return said
