"""The NTLM initiator, with the acceptor of pyspnego, the server code of impacket and our own as peers."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import spnego
from impacket import ntlm as impacket
from impacket.smbserver import computeNTLMv2

from msmq_fast.rpc.auth.context import AuthError, AuthFailure, AuthLevel, AuthType
from msmq_fast.rpc.auth.initiators import Credentials, initiate
from msmq_fast.rpc.auth.mechanism import AuthCounters, Context
from msmq_fast.rpc.auth.ntlmmessages import AvId, Challenge, Flags, pack_av_pairs
from msmq_fast.security.nthash import nt_hash
from tests.rpc.auth.conversing import converse
from tests.support.rpc.parties import NOW, PASSWORD, acceptors, counting, parts, pdu, shake_hands

WHO = Credentials("alice", "", PASSWORD)


def initiator(
    who: Credentials = WHO, level: AuthLevel = AuthLevel.PRIVACY, now: Callable[[], float] = lambda: NOW
) -> Context:
    return initiate(AuthType.NTLM, level, "host/queues", who, AuthCounters(), now, counting(77))


@pytest.mark.parametrize("who", [WHO, Credentials("alice", "DOM", "", nt_hash(PASSWORD))])
def test_pyspnego_lets_it_in(who: Credentials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its acceptor builds the response again from its parts and checks the MIC."""
    file = tmp_path / "users"
    file.write_text(f"{who.domain}:alice:{PASSWORD}\n", encoding="utf-8")
    monkeypatch.setenv("NTLM_USER_FILE", str(file))
    server = spnego.server(protocol="ntlm")
    client = initiator(who)
    server.step(client.step(server.step(client.step(b""))))
    assert server.complete
    assert client.complete
    assert server.client_principal == (f"{who.domain}\\alice" if who.domain else "alice")
    converse(client, server)


def test_impacket_derives_the_same_keys() -> None:
    """The NTLM of impacket's SMB server; its challenge has no time stamp, so there is no MIC, but LMv2."""
    client = initiator()
    first = impacket.NTLMAuthNegotiate()
    first.fromString(client.step(b""))
    info = pack_av_pairs({AvId.NB_DOMAIN_NAME: b"D\0", AvId.NB_COMPUTER_NAME: b"C\0"})
    flags = Flags(first["flags"] | Flags.TARGET_TYPE_SERVER)
    challenge = Challenge(flags, b"challeng", "C", info).pack()
    token = client.step(challenge)
    message = impacket.NTLMAuthChallengeResponse()
    message.fromString(token)
    sent = impacket.NTLMAuthChallenge()
    sent.fromString(challenge)
    status, key = computeNTLMv2(
        "alice", b"", nt_hash(PASSWORD), b"challeng", message, sent, {"flags": first["flags"]}
    )
    assert status == 0
    lm = impacket.hmac_md5(
        impacket.NTOWFv2("alice", "", "", nt_hash(PASSWORD)), b"challeng" + message["lanman"][16:]
    )
    assert message["lanman"][:16] == lm
    signing = impacket.SIGNKEY(flags, key)
    handle = impacket.ARC4.new(impacket.SEALKEY(flags, key)).encrypt
    expected = impacket.SEAL(flags, signing, handle, b"headstub", b"stub", 0, handle)
    stub, signature = client.protect(b"head", b"stub", b"", privacy=True, sign_header=False)
    assert (stub, signature) == (expected[0], expected[1].getData())


@pytest.mark.rule("RP-20")
@pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.PKT, AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
@pytest.mark.parametrize("who", [WHO, Credentials("ALICE", "any", PASSWORD), Credentials()])
def test_both_our_sides(level: AuthLevel, who: Credentials) -> None:
    """Bind, bind_ack, auth3: three legs."""
    client, server = initiator(who, level), acceptors(anonymous=True).accept(10, level, "")
    assert len(shake_hands(client, server)) == 3
    assert server.caller.name == ("alice" if who.user else "")
    for privacy in (False, True):
        whole = bytearray(b"".join(pdu(bytes((n,)) * 48, 16) for n in range(5)))
        plain = bytes(whole)
        client.protect_pdus(whole, 24, privacy=privacy, sign_header=True)
        server.unprotect_pdus(whole, 24, privacy=privacy, sign_header=True)
        assert parts(whole[:96], 16)[1] == parts(plain[:96], 16)[1]


def test_secrets_are_not_shown() -> None:
    assert PASSWORD not in repr(WHO)
    assert nt_hash(PASSWORD).hex() not in repr(Credentials("a", nt_hash=nt_hash(PASSWORD)))


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({"flags": Flags(0xE28A8233) & ~Flags.SEAL}, AuthFailure.WEAK),
        ({"flags": Flags(0xE28A8233) & ~Flags.EXTENDED_SESSIONSECURITY}, AuthFailure.WEAK),
        ({"flags": Flags(0xE28A8233) & ~Flags.UNICODE}, AuthFailure.TOKEN),
        ({"flags": Flags(0xE28A8233) & ~Flags.TARGET_INFO}, AuthFailure.TOKEN),
        ({"target_info": b"\1\0\4\0C\0\0\0\0"}, AuthFailure.TOKEN),
        ({"target_info": b"\1\0\2\0C\0\0\0\0\0"}, AuthFailure.TOKEN),
    ],
)
def test_challenges_that_are_refused(changes: dict[str, object], failure: AuthFailure) -> None:
    values: dict[str, object] = {
        "flags": Flags(0xE28A8233),
        "server_challenge": b"challeng",
        "target_name": "C",
        "target_info": pack_av_pairs({2: b"D\0", 1: b"C\0"}),
    }
    client = initiator()
    client.step(b"")
    with pytest.raises(AuthError) as caught:
        client.step(Challenge(**{**values, **changes}).pack())  # type: ignore[arg-type]
    assert caught.value.failure is failure


def test_challenges_that_are_cut_or_point_outside() -> None:
    whole = Challenge(Flags(0xE28A8233), b"challeng", "C", pack_av_pairs({2: b"D\0", 1: b"C\0"})).pack()
    cut = [whole[:size] for size in range(len(whole))]
    for at in (12, 40):
        moved = bytearray(whole)
        struct.pack_into("<I", moved, at + 4, len(whole) - 1)
        cut.append(bytes(moved))
    for token in cut:
        client = initiator()
        client.step(b"")
        with pytest.raises(AuthError):
            client.step(token)
        assert not client.complete
