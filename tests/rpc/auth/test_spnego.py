"""SPNEGO around NTLM: pyspnego as the peer on either side; the order of mechanisms, and the mechListMIC."""

import contextlib
from pathlib import Path

import pytest
import spnego
from hypothesis import given
from hypothesis import strategies as st
from spnego._spnego import NegState as TheirState
from spnego._spnego import NegTokenInit as TheirInit
from spnego._spnego import NegTokenResp as TheirResp
from spnego._spnego import unpack_token
from spnego.iov import BufferType

from msmq_fast.rpc.auth.acceptors import Acceptors
from msmq_fast.rpc.auth.context import AuthError, AuthFailure, AuthLevel, AuthType
from msmq_fast.rpc.auth.initiators import Credentials, initiate
from msmq_fast.rpc.auth.mechanism import AuthCounters, Context
from msmq_fast.rpc.auth.spnegotokens import KERBEROS, NTLM, NegState, NegTokenInit, NegTokenResp
from tests.rpc.auth.conversing import converse
from tests.support.rpc.parties import NOW, PASSWORD, acceptors, counting, shake_hands

UNKNOWN = bytes.fromhex("2b0601040182370202aa")
WHO = Credentials("alice", "", PASSWORD)


def initiator(level: AuthLevel = AuthLevel.PRIVACY, auth_type: AuthType = AuthType.SPNEGO) -> Context:
    return initiate(auth_type, level, "host/queues", WHO, AuthCounters(), lambda: NOW, counting(77))


def check_both_ways(client: Context, server: Context) -> None:
    for privacy in (True, False):
        for one, other in ((client, server), (server, client)):
            stub, token = one.protect(b"head", b"stub", b"tail", privacy=privacy, sign_header=True)
            assert (
                other.unprotect(b"head", stub, b"tail", token, privacy=privacy, sign_header=True) == b"stub"
            )


@pytest.mark.rule("RP-18", "RP-20")
@pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.PKT, AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
def test_both_our_sides(level: AuthLevel) -> None:
    """Bind, bind_ack, alter_context, alter_context_resp: the number of legs is even."""
    client, server = initiator(level), acceptors().accept(9, level, "192.0.2.7:1")
    said = shake_hands(client, server)
    assert len(said) == 4
    assert NegTokenResp.parse(said[2]).mic
    assert NegTokenResp.parse(said[3]).mic
    assert NegTokenResp.parse(said[3]).state == NegState.ACCEPT_COMPLETED
    assert server.caller.name == "alice"
    assert server.caller.auth_type == AuthType.SPNEGO
    assert server.overhead() == client.overhead() == 16
    check_both_ways(client, server)


@pytest.mark.rule("RP-18")
def test_pyspnego_logs_on() -> None:
    """dpapi-ng and others come this way; Kerberos stands first in its list where it has a ticket."""
    server = acceptors().accept(9, AuthLevel.PRIVACY, "")
    client = spnego.client("alice", PASSWORD, hostname="queues", protocol="negotiate")
    token: bytes | None = None
    answer: bytes | None = None
    while not client.complete:
        token = client.step(answer)
        answer = server.step(token) if token else None
    assert server.complete
    assert server.caller.name == "alice"
    for _ in range(3):
        sealed = client.wrap_iov(
            [BufferType.header, (BufferType.sign_only, b"head"), b"request", (BufferType.sign_only, b"tail")]
        )
        signature, _, stub, _ = (buffer.data for buffer in sealed.buffers)
        clear = server.unprotect(b"head", stub, b"tail", signature, privacy=True, sign_header=True)
        assert clear == b"request"


def test_pyspnego_lets_us_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "users"
    file.write_text(f":alice:{PASSWORD}\n", encoding="utf-8")
    monkeypatch.setenv("NTLM_USER_FILE", str(file))
    server = spnego.server(protocol="negotiate")
    client = initiator()
    token = client.step(b"")
    while not client.complete:
        answer = server.step(token)
        assert answer is not None
        token = client.step(answer)
    assert server.complete
    converse(client, server)


@pytest.mark.parametrize("preferred", [UNKNOWN, KERBEROS])
def test_the_mechanism_may_stand_behind_others(preferred: bytes) -> None:
    """Nobody knows then who put them there: both sides have to prove the list."""
    server = acceptors().accept(9, AuthLevel.PRIVACY, "")
    inner = initiator(auth_type=AuthType.NTLM)
    offer = NegTokenInit.offer((preferred, NTLM), b"a token of another mechanism")
    answer = NegTokenResp.parse(server.step(offer.pack()))
    assert answer == NegTokenResp(NegState.REQUEST_MIC, NTLM)
    answer = NegTokenResp.parse(server.step(NegTokenResp(token=inner.step(b"")).pack()))
    last = inner.step(answer.token)
    answer = NegTokenResp.parse(server.step(NegTokenResp(token=last).pack()))
    assert answer.state == NegState.ACCEPT_INCOMPLETE  # no MIC has come yet
    assert answer.mic
    assert not server.complete
    with pytest.raises(AuthError):
        server.step(NegTokenResp(mic=bytes(16)).pack())


def run_to_the_end(change: str) -> Context:
    """A client whose last token is changed."""
    server = acceptors().accept(9, AuthLevel.PRIVACY, "")
    client = initiator()
    token = client.step(server.step(client.step(b"")))
    last = NegTokenResp.parse(token)
    if change == "mic":
        last = NegTokenResp(last.state, b"", last.token, bytes(16))
    elif change == "none":
        last = NegTokenResp(last.state, b"", last.token)
    elif change == "reject":
        last = NegTokenResp(NegState.REJECT, b"", last.token, last.mic)
    server.step(last.pack())
    return server


def test_the_mech_list_mic_is_checked() -> None:
    assert run_to_the_end("").complete
    for change in ("mic", "reject"):
        with pytest.raises(AuthError):
            run_to_the_end(change)
    # Where the mechanism stands first, the list needs no proof (RFC 4178 5).
    assert run_to_the_end("none").complete


def test_our_client_insists_on_the_mic() -> None:
    server = acceptors().accept(9, AuthLevel.PRIVACY, "")
    client = initiator()
    answer = server.step(client.step(server.step(client.step(b""))))
    bare = NegTokenResp(NegTokenResp.parse(answer).state)
    with pytest.raises(AuthError, match="prove"):
        client.step(bare.pack())


def test_a_list_that_was_changed_on_its_way() -> None:
    """Somebody put a mechanism before ours, to make the server take another token."""
    server = acceptors().accept(9, AuthLevel.PRIVACY, "")
    client = initiator()
    offer = NegTokenInit.parse(client.step(b""))
    token = server.step(NegTokenInit.offer((NTLM, UNKNOWN), offer.mech_token).pack())
    with pytest.raises(AuthError) as caught:
        server.step(client.step(token))
    assert caught.value.failure is AuthFailure.SIGNATURE


def test_windows_without_a_domain_sends_plain_ntlm() -> None:
    server = acceptors().accept(9, AuthLevel.PRIVACY, "")
    client = initiator(auth_type=AuthType.NTLM)
    assert len(shake_hands(client, server)) == 3
    assert server.caller.auth_type == AuthType.SPNEGO
    check_both_ways(client, server)


# ---- what is spoken


@pytest.mark.rule("RP-18", "RP-19")
@pytest.mark.parametrize(
    ("auth_type", "level", "failure"),
    [
        (0, 2, AuthFailure.TYPE),
        (1, 2, AuthFailure.TYPE),
        (14, 6, AuthFailure.TYPE),
        (16, 6, AuthFailure.TYPE),  # no keytab
        (68, 5, AuthFailure.TYPE),
        (255, 6, AuthFailure.TYPE),
        (9, 3, AuthFailure.TOKEN),
        (9, 0, AuthFailure.LEVEL),
        (9, 1, AuthFailure.LEVEL),
        (10, 7, AuthFailure.LEVEL),
        (0, 1, AuthFailure.LEVEL),
        (0, 255, AuthFailure.LEVEL),
    ],
)
def test_types_and_levels_that_are_not_spoken(auth_type: int, level: int, failure: AuthFailure) -> None:
    factory = acceptors()
    with pytest.raises(AuthError) as caught:
        factory.accept(auth_type, level, "")
    assert caught.value.failure is failure
    assert factory.counters.failed == {failure: 1}


@pytest.mark.rule("RP-19")
@pytest.mark.parametrize("level", [2, 3, 4, 5, 6])
def test_levels_of_ntlm(level: int) -> None:
    assert acceptors().accept(10, level, "").step(initiator(auth_type=AuthType.NTLM).step(b""))


def test_ntlm_can_be_switched_off() -> None:
    factory: Acceptors = acceptors(ntlm=False)
    for auth_type in (9, 10):
        with pytest.raises(AuthError) as caught:
            factory.accept(auth_type, 6, "")
        assert caught.value.failure is AuthFailure.TYPE


def test_no_mechanism_in_common() -> None:
    server = acceptors().accept(9, 6, "")
    with pytest.raises(AuthError) as caught:
        server.step(NegTokenInit.offer((KERBEROS, UNKNOWN), b"x").pack())
    assert caught.value.failure is AuthFailure.TYPE


# ---- tokens


def test_tokens_are_those_of_pyspnego() -> None:
    theirs = TheirInit(["1.2.840.113554.1.2.2", "1.3.6.1.4.1.311.2.2.10"], mech_token=b"t" * 300).pack()
    assert NegTokenInit.offer((KERBEROS, NTLM), b"t" * 300).pack() == theirs
    mine = NegTokenInit.parse(theirs)
    assert (mine.mechanisms, mine.mech_token) == ((KERBEROS, NTLM), b"t" * 300)
    full = TheirResp(TheirState.request_mic, "1.3.6.1.4.1.311.2.2.10", b"r" * 70_000, b"mic").pack()
    assert NegTokenResp(NegState.REQUEST_MIC, NTLM, b"r" * 70_000, b"mic").pack() == full
    assert NegTokenResp.parse(full) == NegTokenResp(NegState.REQUEST_MIC, NTLM, b"r" * 70_000, b"mic")
    assert unpack_token(NegTokenResp(token=b"x").pack()).response_token == b"x"


@given(st.data())
def test_mutated_tokens_raise_auth_error_only(data: st.DataObject) -> None:
    server = acceptors().accept(9, AuthLevel.PRIVACY, "")
    client = initiator()
    tokens = [client.step(b"")]
    place = data.draw(st.integers(0, 1))
    if place:
        tokens.append(client.step(server.step(tokens[0])))
    token = bytearray(tokens[-1])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, min(60, len(token) - 1)) | st.integers(0, len(token) - 1))
        token[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.none() | st.integers(0, len(token)))
    try:
        server.step(bytes(token[:cut]))
    except AuthError:
        assert not server.complete


@given(st.binary(max_size=64))
def test_any_bytes_raise_auth_error_only(token: bytes) -> None:
    for prefix in (b"", b"\x60\x40\x06\x06\x2b\x06\x01\x05\x05\x02\xa0", b"\xa1\x84", b"NTLMSSP\0\1\0\0\0"):
        server = acceptors().accept(9, AuthLevel.CONNECT, "")
        with contextlib.suppress(AuthError):
            server.step(prefix + token)
        assert not server.complete
