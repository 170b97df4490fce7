"""The NTLM acceptor, with the clients of impacket and pyspnego as peers; and what it refuses."""

import itertools
import struct

import pytest
import spnego
from hypothesis import given
from hypothesis import strategies as st
from impacket import ntlm as impacket
from spnego.iov import BufferType

from msmq_fast._native.ntlm import hmac_md5
from msmq_fast.rpc.auth.acceptors import Acceptors
from msmq_fast.rpc.auth.context import AuthError, AuthFailure, AuthLevel, AuthType
from msmq_fast.rpc.auth.initiators import Credentials, initiate
from msmq_fast.rpc.auth.mechanism import AuthCounters, Context
from msmq_fast.rpc.auth.ntlm import host_of
from msmq_fast.rpc.auth.ntlmmessages import Authenticate, Challenge, Flags, pack_negotiate
from msmq_fast.rpc.auth.ntlmsession import ntowf_v2
from msmq_fast.security.nthash import nt_hash
from msmq_fast.security.sid import AUTHENTICATED_USERS
from msmq_fast.security.token import ANONYMOUS_TOKEN
from tests.support.rpc.parties import NOW, PASSWORD, acceptors, accounts, counting, parts, pdu

LEVELS = [AuthLevel.CONNECT, AuthLevel.PKT, AuthLevel.INTEGRITY, AuthLevel.PRIVACY]


class ImpacketClient:
    """The NTLM of impacket's DCE/RPC client, without its transport (rpcrt.py: bind, auth3, requests)."""

    def __init__(
        self, user: str, password: str, domain: str = "", nt: bytes | str = "", *, v2: bool = True
    ) -> None:
        self.who = (user, password, domain)
        self.nt = nt
        self.v2 = v2
        self.first = impacket.getNTLMSSPType1("", "", signingRequired=True, use_ntlmv2=v2)
        self.sequence = {"Client": 0, "Server": 0}

    def negotiate(self) -> bytes:
        return self.first.getData()

    def authenticate(self, challenge: bytes) -> bytes:
        user, password, domain = self.who
        lm = bytes(16) if self.nt else ""
        message, key = impacket.getNTLMSSPType3(
            self.first, challenge, user, password, domain, lm, self.nt, use_ntlmv2=self.v2
        )
        self.flags = message["flags"]
        self.signing = {s: impacket.SIGNKEY(self.flags, key, s) for s in ("Client", "Server")}
        self.sealing = {
            s: impacket.ARC4.new(impacket.SEALKEY(self.flags, key, s)).encrypt for s in ("Client", "Server")
        }
        return message.getData()

    def seal(self, side: str, whole: bytes, stub: bytes) -> tuple[bytes, bytes]:
        sequence = self.sequence[side]
        self.sequence[side] += 1
        sealed, signature = impacket.SEAL(
            self.flags, self.signing[side], self.sealing[side], whole, stub, sequence, self.sealing[side]
        )
        return sealed, signature.getData()

    def sign(self, side: str, whole: bytes) -> bytes:
        sequence = self.sequence[side]
        self.sequence[side] += 1
        signing, handle = self.signing[side], self.sealing[side]
        return impacket.SIGN(self.flags, signing, whole, sequence, handle).getData()


def log_on(context: Context, client: ImpacketClient) -> None:
    assert context.step(client.authenticate(context.step(client.negotiate()))) == b""


@pytest.mark.rule("RP-18", "RP-20")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("domain", ["", "WORKGROUP"])
def test_impacket_logs_on(level: AuthLevel, domain: str) -> None:
    factory = acceptors()
    context = factory.accept(10, level, "192.0.2.1:5")
    assert not context.complete
    assert not context.blocking
    log_on(context, ImpacketClient("ALICE", PASSWORD, domain))
    assert context.complete
    caller = context.caller
    assert (caller.name, caller.auth_type, caller.auth_level) == ("alice", AuthType.NTLM, level)
    assert caller.address == "192.0.2.1:5"
    assert AUTHENTICATED_USERS in caller.token.sids
    operators = accounts().group_sid("operators")
    assert operators in caller.token.sids
    assert factory.counters.completed == {AuthType.NTLM: 1}
    assert not factory.counters.failed


def test_impacket_logs_on_with_a_hash_and_names_with_umlauts() -> None:
    hashed = accounts().users["alice"].nt_hash
    log_on(acceptors().accept(10, 6, ""), ImpacketClient("alice", "", "", hashed))
    log_on(acceptors().accept(10, 6, ""), ImpacketClient("müller", "ß"))
    # A name of the form of the directory stands for the account before the @.
    log_on(acceptors().accept(10, 6, ""), ImpacketClient("alice@example.net", PASSWORD))


@pytest.mark.rule("RP-21")
@pytest.mark.parametrize("sign_header", [False, True])
@pytest.mark.parametrize("privacy", [False, True])
@pytest.mark.parametrize("bulk", [False, True])
def test_protected_pdus_are_what_impacket_says(sign_header: bool, privacy: bool, bulk: bool) -> None:
    """Signatures of NTLM cover the whole PDU, header signing or not (MS-NLMP 3.4.6.1)."""
    context = acceptors().accept(10, AuthLevel.PRIVACY if privacy else AuthLevel.INTEGRITY, "")
    client = ImpacketClient("alice", PASSWORD)
    log_on(context, client)
    size = context.overhead()
    assert size == 16
    for length in (0, 16, 48, 64, 5792, 4096, 100):
        plain = bytes(i * 7 & 255 for i in range(length))
        for side in ("Client", "Server"):
            whole = pdu(plain, size)
            head, stub, trailer, _ = parts(whole, size)
            if privacy:
                sealed, token = client.seal(side, head + stub + trailer, stub)
            else:
                sealed, token = stub, client.sign(side, head + stub + trailer)
            expected = head + sealed + trailer + token
            if side == "Server" and bulk:
                context.protect_pdus(whole, 24, privacy=privacy, sign_header=sign_header)
                assert whole == expected
            elif side == "Server":
                out = context.protect(head, stub, trailer, privacy=privacy, sign_header=sign_header)
                assert out == (sealed, token)
            elif bulk:
                arrived = bytearray(expected)
                context.unprotect_pdus(arrived, 24, privacy=privacy, sign_header=sign_header)
                assert arrived[:-size] == whole[:-size]
            else:
                clear = context.unprotect(
                    head, sealed, trailer, token, privacy=privacy, sign_header=sign_header
                )
                assert clear == plain


def pyspnego(user: str, password: str) -> spnego.ContextProxy:
    return spnego.client(user, password, hostname="queues", service="host", protocol="ntlm")


def test_pyspnego_logs_on_and_proves_its_messages() -> None:
    """pyspnego announces a MIC."""
    context = acceptors().accept(10, AuthLevel.PRIVACY, "")
    client = pyspnego("NOWHERE\\alice", PASSWORD)
    token = client.step(context.step(client.step() or b""))
    assert token is not None
    context.step(token)
    assert context.caller.name == "alice"
    for _ in range(3):
        sealed = client.wrap_iov(
            [BufferType.header, (BufferType.sign_only, b"head"), b"stub" * 9, (BufferType.sign_only, b"tail")]
        )
        token, _, stub, _ = (buffer.data for buffer in sealed.buffers)
        assert context.unprotect(b"head", stub, b"tail", token, privacy=True, sign_header=True) == b"stub" * 9
        stub, token = context.protect(b"HEAD", b"answer", b"TAIL", privacy=True, sign_header=True)
        clear = client.unwrap_iov(
            [
                (BufferType.header, token),
                (BufferType.sign_only, b"HEAD"),
                stub,
                (BufferType.sign_only, b"TAIL"),
            ]
        )
        assert clear.buffers[2].data == b"answer"


# ---- what is refused


def refused(context: Context, token: bytes, factory: Acceptors) -> AuthFailure:
    """The reason; and that nothing is possible afterwards."""
    before = factory.counters.failed.total()
    with pytest.raises(AuthError) as caught:
        context.step(token)
    assert factory.counters.failed.total() == before + 1
    assert not context.complete
    with pytest.raises(AuthError):
        context.step(token)
    with pytest.raises(AuthError):
        context.unprotect(b"", b"", b"", bytes(16), privacy=True, sign_header=True)
    assert PASSWORD not in str(caught.value)
    return caught.value.failure


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("user", "password"),
    [("alice", "wrong"), ("nobody", PASSWORD), ("ghost", ""), ("ghost", PASSWORD), ("", "x")],
)
def test_whoever_cannot_log_on_learns_nothing(level: AuthLevel, user: str, password: str) -> None:
    factory = acceptors(anonymous=True)
    context = factory.accept(10, level, "")
    client = ImpacketClient(user, password)
    token = client.authenticate(context.step(client.negotiate()))
    with pytest.raises(AuthError, match=rf"^NTLM: '{user}' cannot log on$") as caught:
        context.step(token)
    assert caught.value.failure is AuthFailure.LOGON
    assert factory.counters.failed == {AuthFailure.LOGON: 1}
    assert not context.complete


def test_ntlm_1_is_refused() -> None:
    factory = acceptors()
    context = factory.accept(10, AuthLevel.CONNECT, "")
    client = ImpacketClient("alice", PASSWORD, v2=False)
    assert (
        refused(context, client.authenticate(context.step(client.negotiate())), factory) is AuthFailure.LOGON
    )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("allowed", [False, True])
def test_anonymous_callers_by_policy(level: AuthLevel, allowed: bool) -> None:
    factory = acceptors(anonymous=allowed)
    context = factory.accept(10, level, "")
    client = ImpacketClient("", "")
    token = client.authenticate(context.step(client.negotiate()))
    if not allowed:
        assert refused(context, token, factory) is AuthFailure.LOGON
        return
    context.step(token)
    assert context.caller.name == ""
    assert context.caller.token == ANONYMOUS_TOKEN
    sealed, signature = client.seal("Client", b"headstub", b"stub")
    assert context.unprotect(b"head", sealed, b"", signature, privacy=True, sign_header=True) == b"stub"


def test_a_logon_cannot_be_replayed() -> None:
    """What logged on once is no answer to the next challenge."""
    factory = acceptors()
    context = factory.accept(10, AuthLevel.CONNECT, "")
    client = ImpacketClient("alice", PASSWORD)
    token = client.authenticate(context.step(client.negotiate()))
    context.step(token)
    again = factory.accept(10, AuthLevel.CONNECT, "")
    again.step(client.negotiate())
    assert refused(again, token, factory) is AuthFailure.LOGON


@pytest.mark.parametrize(("hours", "taken"), [(-37, False), (-35, True), (35, True), (37, False)])
def test_time_stamps_have_a_window(hours: float, taken: bool) -> None:
    """MaxLifetime (MS-NLMP 3.2.5.1.2). Our challenge has the time; so the clock goes between the messages."""
    users = accounts()
    factory = acceptors(users)
    context = factory.accept(10, AuthLevel.CONNECT, "")
    client = ImpacketClient("alice", PASSWORD)
    token = client.authenticate(context.step(client.negotiate()))
    later = acceptors(users, now=NOW + hours * 3600)
    other = later.accept(10, AuthLevel.CONNECT, "")  # draws the same challenge
    other.step(client.negotiate())
    if taken:
        other.step(token)
        assert other.complete
    else:
        assert refused(other, token, later) is AuthFailure.LOGON


def ours(level: AuthLevel = AuthLevel.PRIVACY) -> Context:
    """Our initiator, which sends a MIC."""
    who = Credentials("alice", "", PASSWORD)
    return initiate(AuthType.NTLM, level, "host/queues", who, AuthCounters(), lambda: NOW, counting(5))


def own_logon(context: Context) -> bytes:
    client = ours()
    return client.step(context.step(client.step(b"")))


@pytest.mark.parametrize("at", [60, 63, 64, 72, 87])
def test_changed_messages_are_noticed_by_the_mic(at: int) -> None:
    """Flags, version and the MIC itself; the response is covered by the proof."""
    factory = acceptors()
    context = factory.accept(10, AuthLevel.CONNECT, "")
    token = bytearray(own_logon(context))
    token[at] ^= 0x20 if at == 60 else 1
    assert refused(context, bytes(token), factory) is AuthFailure.LOGON


def test_a_changed_negotiation_is_noticed_by_the_mic() -> None:
    """Somebody took SEAL from the client's offer."""
    factory = acceptors()
    context = factory.accept(10, AuthLevel.INTEGRITY, "")
    client = ours(AuthLevel.INTEGRITY)
    offer = bytearray(client.step(b""))
    offer[12] &= ~Flags.SEAL & 0xFF
    assert refused(context, client.step(context.step(bytes(offer))), factory) is AuthFailure.LOGON


@pytest.mark.parametrize(
    ("level", "without"),
    [
        (AuthLevel.PRIVACY, Flags.SEAL),
        (AuthLevel.PKT, Flags.SIGN | Flags.SEAL),
        (AuthLevel.INTEGRITY, Flags.EXTENDED_SESSIONSECURITY),
        (AuthLevel.INTEGRITY, Flags.KEY_128 | Flags.KEY_56),
    ],
)
def test_offers_that_are_too_weak_for_the_level(level: AuthLevel, without: Flags) -> None:
    factory = acceptors()
    offer = Flags(0xE2088237) & ~without
    assert refused(factory.accept(10, level, ""), pack_negotiate(offer), factory) is AuthFailure.WEAK
    assert factory.accept(10, level, "").step(pack_negotiate(offer | without))
    # Nor may the client take back later what the level needs.
    context = factory.accept(10, level, "")
    client = ImpacketClient("alice", PASSWORD)
    token = bytearray(client.authenticate(context.step(client.negotiate())))
    (flags,) = struct.unpack_from("<I", token, 60)
    struct.pack_into("<I", token, 60, flags & ~without & 0xFFFFFFFF)
    assert refused(context, bytes(token), factory) is AuthFailure.WEAK


def test_only_unicode_is_spoken() -> None:
    factory = acceptors()
    offer = Flags(0xE2088237) & ~Flags.UNICODE
    assert refused(factory.accept(10, 2, ""), pack_negotiate(offer), factory) is AuthFailure.TOKEN


@pytest.mark.parametrize("key_56", [False, True])
def test_sessions_with_56_bits_and_without_key_exchange(key_56: bool) -> None:
    context = acceptors().accept(10, AuthLevel.PRIVACY, "")
    client = ImpacketClient("alice", PASSWORD)
    client.first["flags"] &= ~(Flags.KEY_128 if key_56 else Flags.KEY_EXCH) & 0xFFFFFFFF
    log_on(context, client)
    for _ in range(3):
        sealed, token = client.seal("Client", b"headstub", b"stub")
        assert context.unprotect(b"head", sealed, b"", token, privacy=True, sign_header=False) == b"stub"
        assert context.protect(b"head", b"stub", b"", privacy=True, sign_header=False) == client.seal(
            "Server", b"headstub", b"stub"
        )


@pytest.mark.parametrize(
    "what", ["repeated", "skipped", "stub", "header", "trailer", "token", "short", "long"]
)
@pytest.mark.parametrize("privacy", [False, True])
@pytest.mark.parametrize("bulk", [False, True])
def test_pdus_that_are_not_the_next_one(what: str, privacy: bool, bulk: bool) -> None:
    factory = acceptors()
    context = factory.accept(10, AuthLevel.PRIVACY, "")
    client = ours()
    context.step(client.step(context.step(client.step(b""))))
    made = []
    for _ in range(3):
        whole = pdu(bytes(range(48)), 16)
        client.protect_pdus(whole, 24, privacy=privacy, sign_header=True)
        made.append(whole)

    def take(whole: bytes | bytearray) -> None:
        if bulk:
            context.unprotect_pdus(bytearray(whole), 24, privacy=privacy, sign_header=True)
        else:
            context.unprotect(*parts(whole, 16), privacy=privacy, sign_header=True)

    take(made[0])
    wrong = made[0] if what == "repeated" else made[2] if what == "skipped" else made[1]
    at = {"stub": 30, "header": 12, "trailer": -20, "token": -10}.get(what)
    if at is not None:
        wrong[at] ^= 1
    if what == "short":
        wrong = wrong[:-1]
    if what == "long":
        wrong += b"\0"
    with pytest.raises(AuthError) as caught:
        take(wrong)
    assert caught.value.failure is AuthFailure.SIGNATURE
    assert factory.counters.failed == {AuthFailure.SIGNATURE: 1}
    assert not context.complete
    with pytest.raises(AuthError):  # nor is the right one taken afterwards
        take(made[1])


def test_wrong_lengths_are_refused_before_anything_is_written() -> None:
    context = acceptors().accept(10, AuthLevel.PRIVACY, "")
    log_on(context, ImpacketClient("alice", PASSWORD))
    for field, value in ((8, 24 + 8 + 15), (8, 0xFFFF), (8, 0), (10, 15), (10, 0xFFFF)):
        whole = pdu(bytes(16), 16)
        struct.pack_into("<H", whole, field, value)
        kept = bytes(whole)
        with pytest.raises(ValueError, match="lengths"):
            context.protect_pdus(whole, 24, privacy=True, sign_header=True)
        assert whole == kept
    big = pdu(bytes(16), 16, big_endian=True)
    context.protect_pdus(big, 24, privacy=True, sign_header=True)
    assert big[-16:-12] == b"\1\0\0\0"


# ---- malformed tokens


def scripted(
    cut: int | None = None, patch: tuple[int, bytes] | None = None
) -> tuple[Acceptors, Context, bytes]:
    factory = acceptors()
    context = factory.accept(10, AuthLevel.CONNECT, "")
    token = own_logon(context)
    if patch is not None:
        token = token[: patch[0]] + patch[1] + token[patch[0] + len(patch[1]) :]
    return factory, context, token[:cut]


def test_every_truncation_is_refused() -> None:
    factory, context, whole = scripted()
    for cut in range(len(whole)):
        factory, context, token = scripted(cut)
        assert refused(context, token, factory) in (AuthFailure.TOKEN, AuthFailure.LOGON)


def without_room_for_the_mic(token: bytes) -> bytes:
    """As clients send it that know no MIC: 16 bytes less before the payload."""
    fields = [(size, most, at - 16) for size, most, at in struct.iter_unpack("<HHI", token[12:60])]
    return token[:12] + b"".join(struct.pack("<HHI", *field) for field in fields) + token[60:72] + token[88:]


def test_av_pairs_that_do_not_end() -> None:
    """In a response whose proof is right: the secret is known to whoever sends it."""
    head = struct.pack("<BB6xQ8s4x", 1, 1, int((NOW + 11_644_473_600) * 10_000_000), b"c" * 8)
    for blob, failure in (
        (head + b"\0\0\0\0", None),
        (head, AuthFailure.TOKEN),
        (head + b"\0\0\0", AuthFailure.TOKEN),
        (head + b"\1\0\5\0abcd", AuthFailure.TOKEN),
        (head + b"\1\0\4\0abcd", AuthFailure.TOKEN),
        (head + b"\0\0\4\0abcd", AuthFailure.TOKEN),
        (head + b"\6\0\1\0a\0\0\0\0", AuthFailure.TOKEN),
        (b"\2" + head[1:] + b"\0\0\0\0", AuthFailure.TOKEN),
        (head[:-1], AuthFailure.TOKEN),
        # A MIC is announced, and there is no room for one.
        (head + struct.pack("<HHI", 6, 4, 2) + b"\0\0\0\0", AuthFailure.TOKEN),
    ):
        factory = acceptors()
        context = factory.accept(10, AuthLevel.CONNECT, "")
        challenge = Challenge.parse(context.step(pack_negotiate(Flags(0xE2088237))))
        key = ntowf_v2(nt_hash(PASSWORD), "alice", "")
        proof = hmac_md5(key, challenge.server_challenge, blob)
        token = Authenticate(challenge.flags, b"", proof + blob, "", "alice", "", bytes(16)).pack()
        if b"\6\0\4\0" in blob:
            token = without_room_for_the_mic(token)
        if failure is None:
            context.step(token)
            assert context.complete
        else:
            assert refused(context, token, factory) is failure


@given(
    st.lists(st.tuples(st.integers(0, 400), st.binary(min_size=1, max_size=8)), min_size=1, max_size=4),
    st.booleans(),
)
def test_mutated_tokens_raise_auth_error_only(changes: list[tuple[int, bytes]], first: bool) -> None:
    factory = acceptors(anonymous=True)
    context = factory.accept(10, AuthLevel.CONNECT, "")
    token = pack_negotiate(Flags(0xE2088237)) if first else own_logon(context)
    for at, patch in changes:
        token = token[:at] + patch + token[at + len(patch) :]
    try:
        context.step(token)
    except AuthError:
        assert not context.complete
    else:
        # Nothing but what no proof covers was changed: names that are not used, or nothing at all.
        assert first or context.caller.name in ("alice", "")


def test_only_so_many_legs() -> None:
    context = acceptors().accept(10, AuthLevel.CONNECT, "")
    context.step(pack_negotiate(Flags(0xE2088237)))
    for _ in itertools.repeat(None, 2):
        with pytest.raises(AuthError):
            context.step(bytes(70_000))


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("host/orders01", "orders01"),
        ("host/orders01.example.net:2103", "orders01.example.net"),
        ("MSMQ/orders01/example.net@EXAMPLE.NET", "orders01"),
        ("host/10.0.0.7", "10.0.0.7"),
        ("host/fe80::1", "fe80::1"),
        ("host/[fe80::1]:2103", "fe80::1"),
        ("orders01", "orders01"),
        ("EXAMPLE\\orders01$", "orders01"),
        ("orders01$@EXAMPLE.NET", "orders01"),
        ("", ""),
        ("host/", ""),
    ],
)
def test_the_host_of_a_service_principal_name(target: str, host: str) -> None:
    assert host_of(target) == host
