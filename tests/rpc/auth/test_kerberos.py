"""Kerberos, and SPNEGO around it, with a key distribution centre; impacket and pyspnego as clients."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from msmq_fast.rpc.auth.context import AuthError, AuthFailure, AuthLevel, AuthType
from msmq_fast.rpc.auth.initiators import Credentials, initiate
from msmq_fast.rpc.auth.mechanism import AuthCounters, Context
from msmq_fast.rpc.auth.spnegotokens import KERBEROS, NegState, NegTokenInit, NegTokenResp
from msmq_fast.security.principals import Principals
from msmq_fast.security.token import Privilege
from msmq_fast.security.users import Users
from tests.support.processes.kdc import REALM, SERVICE, Kdc, serving
from tests.support.rpc.parties import NOW, PASSWORD, acceptors, counting, parts, pdu, shake_hands

LEVELS = [AuthLevel.CONNECT, AuthLevel.PKT, AuthLevel.INTEGRITY, AuthLevel.PRIVACY]
with_kdc = pytest.mark.needs("krb5kdc", "kdb5_util", "kadmin.local", modules=["gssapi"])


@pytest.fixture(
    scope="module", params=["aes256-cts-hmac-sha1-96", "aes128-cts-hmac-sha256-128", "arcfour-hmac"]
)
def centre(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with serving(tmp_path_factory.mktemp("kdc"), request.param) as kdc:
        yield kdc


@pytest.fixture
def kdc(centre: Kdc, monkeypatch: pytest.MonkeyPatch) -> Kdc:
    for name, value in centre.environment.items():
        monkeypatch.setenv(name, value)
    return centre


def alice(**changes: object) -> Credentials:
    values: dict[str, object] = {"user": "alice", "domain": REALM, "password": "alice", "kerberos": True}
    return Credentials(**{**values, **changes})  # type: ignore[arg-type]


def initiator(
    auth_type: AuthType, level: AuthLevel, who: Credentials | None = None, target: str = SERVICE
) -> Context:
    return initiate(auth_type, level, target, who or alice(), AuthCounters(), lambda: NOW, counting(3))


@with_kdc
@pytest.mark.long(seconds=3)
@pytest.mark.rule("RP-18", "RP-20", "RP-21", "RP-22")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("auth_type", [AuthType.KERBEROS, AuthType.SPNEGO])
def test_log_on_and_protect(kdc: Kdc, auth_type: AuthType, level: AuthLevel) -> None:
    """Three legs in DCE style; the size of a token is known before there is one."""
    server = acceptors(keytab=kdc.keytab).accept(auth_type, level, "192.0.2.4:9")
    client = initiator(auth_type, level)
    assert client.blocking
    assert not server.blocking
    said = shake_hands(client, server)
    assert len(said) == (4 if auth_type == AuthType.SPNEGO else 3)
    assert not client.blocking
    caller = server.caller
    assert (caller.name, caller.token.name) == (f"alice@{REALM}", "alice")
    assert (caller.auth_type, caller.auth_level, caller.address) == (auth_type, level, "192.0.2.4:9")
    privacy = level == AuthLevel.PRIVACY
    for sign_header in (False, True):
        for length in (16, 5744):
            for one, other in ((client, server), (server, client)):
                size = one.overhead()
                whole = pdu(bytes(range(16)) * (length // 16), size, auth_type=auth_type)
                head, stub, trailer, _ = parts(whole, size)
                sent, token = one.protect(head, stub, trailer, privacy=privacy, sign_header=sign_header)
                assert len(token) == size
                assert (sent != stub) == privacy
                clear = other.unprotect(head, sent, trailer, token, privacy=privacy, sign_header=sign_header)
                assert clear == stub
                several = whole * 3
                one.protect_pdus(several, 24, privacy=privacy, sign_header=sign_header)
                other.unprotect_pdus(several, 24, privacy=privacy, sign_header=sign_header)
                assert several[: len(whole) - size] == whole[:-size]


@with_kdc
@pytest.mark.long(seconds=2)
@pytest.mark.parametrize("privacy", [False, True])
@pytest.mark.parametrize(
    "what", ["repeated", "skipped", "stub", "header", "trailer", "token", "cut", "empty"]
)
def test_pdus_that_are_not_the_next_one(kdc: Kdc, what: str, privacy: bool) -> None:
    level = AuthLevel.PRIVACY if privacy else AuthLevel.INTEGRITY
    server = acceptors(keytab=kdc.keytab).accept(AuthType.KERBEROS, level, "")
    client = initiator(AuthType.KERBEROS, level)
    shake_hands(client, server)
    made = []
    for _ in range(3):
        whole = pdu(bytes(range(48)), client.overhead())
        client.protect_pdus(whole, 24, privacy=privacy, sign_header=True)
        made.append(whole)
    server.unprotect_pdus(bytearray(made[0]), 24, privacy=privacy, sign_header=True)
    wrong = made[0] if what == "repeated" else made[2] if what == "skipped" else made[1]
    head, stub, trailer, token = map(bytearray, parts(wrong, client.overhead()))
    if what in ("stub", "header", "trailer", "token"):
        {"stub": stub, "header": head, "trailer": trailer, "token": token}[what][-1] ^= 1
    token = token[:-1] if what == "cut" else token[:0] if what == "empty" else token
    with pytest.raises(AuthError) as caught:
        server.unprotect(
            bytes(head), bytes(stub), bytes(trailer), bytes(token), privacy=privacy, sign_header=True
        )
    assert caught.value.failure is AuthFailure.SIGNATURE
    assert not server.complete


@with_kdc
@pytest.mark.long(seconds=2)
def test_a_pdu_that_is_signed_only_is_no_sealed_one(kdc: Kdc) -> None:
    """Both are tokens of the same kind; who asked for privacy gets nothing less."""
    from gssapi.raw import IOV, IOVBufferType, wrap_iov

    server = acceptors(keytab=kdc.keytab).accept(AuthType.KERBEROS, AuthLevel.PRIVACY, "")
    client = initiator(AuthType.KERBEROS, AuthLevel.PRIVACY)
    shake_hands(client, server)
    signed = IOV(
        (IOVBufferType.header, True, None), (IOVBufferType.data, False, b"request "), std_layout=False
    )
    wrap_iov(client._mechanism._context, signed, confidential=False)  # type: ignore[attr-defined]
    token, stub = signed[0].value or b"", signed[1].value or b""
    assert stub == b"request "
    with pytest.raises(AuthError) as caught:
        server.unprotect(b"", stub, b"", token, privacy=True, sign_header=False)
    assert caught.value.failure is AuthFailure.SIGNATURE


@with_kdc
@pytest.mark.long(seconds=2)
def test_tokens_that_are_refused(kdc: Kdc) -> None:
    """Tampered with, cut, repeated; and none raises anything but AuthError."""
    factory = acceptors(keytab=kdc.keytab)
    token = initiator(AuthType.KERBEROS, AuthLevel.CONNECT).step(b"")
    wrong = [b"", b"\x60", token[:-1], token[:20], bytes(len(token)), b"NTLMSSP\0" + token, token + token]
    wrong += [token[:at] + bytes((token[at] ^ 0x55,)) + token[at + 1 :] for at in range(0, len(token), 9)]
    for bad in wrong:
        server = factory.accept(AuthType.KERBEROS, AuthLevel.CONNECT, "")
        try:
            third = server.step(bad)
        except AuthError:
            continue
        # Some bytes are not protected; a third leg that is not of the client's making ends it.
        assert not server.complete
        with pytest.raises(AuthError):
            server.step(third)
    # The token of somebody who listened: he cannot answer, whether we have seen it before or not.
    for _ in range(2):
        server = factory.accept(AuthType.KERBEROS, AuthLevel.CONNECT, "")
        answer = server.step(token)
        assert not server.complete
        with pytest.raises(AuthError) as caught:
            server.step(answer)
        assert caught.value.failure is AuthFailure.LOGON


@with_kdc
@pytest.mark.long(seconds=2)
def test_two_legs_are_too_few(kdc: Kdc) -> None:
    """Without DCE style there is no third leg, and nothing would tell a repeated token from a first one."""
    from gssapi import MechType, NameType, raw

    target = raw.import_name(SERVICE.replace("/", "@").encode(), NameType.hostbased_service)
    name = raw.import_name(f"alice@{REALM}".encode(), NameType.user)
    mechs = [MechType.kerberos]
    creds = raw.acquire_cred_with_password(name, b"alice", mechs=mechs, usage="initiate").creds
    token = raw.init_sec_context(target, creds=creds, mech=MechType.kerberos, flags=0x32).token
    server = acceptors(keytab=kdc.keytab).accept(AuthType.KERBEROS, AuthLevel.CONNECT, "")
    with pytest.raises(AuthError) as caught:
        server.step(token or b"")
    assert caught.value.failure is AuthFailure.LOGON


@with_kdc
@pytest.mark.long(seconds=3)
def test_credentials_of_every_kind(kdc: Kdc, tmp_path: Path) -> None:
    keytab = tmp_path / "bob.keytab"
    kdc.service_key(keytab, "bob", "-norandkey")
    cache = f"FILE:{tmp_path}/cache"
    kdc.run("kinit", "-c", cache, "-k", "-t", str(keytab), "bob")
    for who in (
        Credentials("bob", REALM, keytab=keytab),
        Credentials("bob", REALM, ccache=cache),
        Credentials(ccache=cache),
        Credentials("bob", "", "bob"),
    ):
        server = acceptors(keytab=kdc.keytab).accept(AuthType.KERBEROS, AuthLevel.PRIVACY, "")
        shake_hands(initiator(AuthType.KERBEROS, AuthLevel.PRIVACY, who), server)
        assert server.caller.name == f"bob@{REALM}"
        # Not in the users file: a program of its own, with no groups.
        assert server.caller.token.name == f"bob@{REALM}"
        assert server.caller.token.privileges == Privilege.NONE
    for who in (alice(password=PASSWORD), alice(user="nobody"), Credentials(keytab=tmp_path / "missing")):
        with pytest.raises(AuthError) as caught:
            initiator(AuthType.KERBEROS, AuthLevel.PRIVACY, who).step(b"")
        assert caught.value.failure is AuthFailure.LOGON
        assert PASSWORD not in str(caught.value)


@with_kdc
@pytest.mark.long(seconds=2)
def test_keytabs_that_are_of_no_use(kdc: Kdc, tmp_path: Path) -> None:
    (tmp_path / "garbage").write_bytes(b"garbage")
    for name in ("missing", "garbage"):
        with pytest.raises(AuthError):
            acceptors(keytab=tmp_path / name)
    other = tmp_path / "other"
    kdc.admin("addprinc -randkey host/other.test")
    kdc.service_key(other, "host/other.test")
    server = acceptors(keytab=other).accept(AuthType.KERBEROS, AuthLevel.CONNECT, "")
    with pytest.raises(AuthError) as caught:
        server.step(initiator(AuthType.KERBEROS, AuthLevel.CONNECT).step(b""))
    assert caught.value.failure is AuthFailure.LOGON


@with_kdc
@pytest.mark.long(seconds=2)
def test_spnego_falls_back_to_ntlm(kdc: Kdc) -> None:
    """Where the client has no ticket, and where the server has no keytab."""
    server = acceptors(keytab=kdc.keytab).accept(AuthType.SPNEGO, AuthLevel.PRIVACY, "")
    who = Credentials("alice", "", PASSWORD, kerberos=True)
    said = shake_hands(initiator(AuthType.SPNEGO, AuthLevel.PRIVACY, who, "host/unknown.test"), server)
    assert KERBEROS not in NegTokenInit.parse(said[0]).mechanisms
    assert server.caller.name == "alice"

    users = Users.new(counting())
    users.add("alice", uid=None, groups=[])
    users.set_password("alice", "alice", counting())
    server = acceptors(users).accept(AuthType.SPNEGO, AuthLevel.PRIVACY, "")
    client = initiator(AuthType.SPNEGO, AuthLevel.PRIVACY)
    said = shake_hands(client, server)
    assert NegTokenInit.parse(said[0]).mechanisms[0] == KERBEROS
    assert NegTokenResp.parse(said[1]).state == NegState.REQUEST_MIC
    assert server.caller.name == "alice"
    stub, token = client.protect(b"h", b"stub", b"t", privacy=True, sign_header=True)
    assert server.unprotect(b"h", stub, b"t", token, privacy=True, sign_header=True) == b"stub"


@with_kdc
@pytest.mark.long(seconds=2)
@pytest.mark.parametrize("centre", ["aes256-cts-hmac-sha1-96", "arcfour-hmac"], indirect=True)
def test_impacket_logs_on(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    """SPNEGO with the other identifier of Kerberos, as in its DCE/RPC client; a Kerberos of its own."""
    from impacket.dcerpc.v5.rpcrt import SEC_TRAILER
    from impacket.krb5 import gssapi, kerberosv5

    # impacket and the centre do not understand each other; the ticket comes from elsewhere.
    cache = kdc.folder / "alice"
    keytab = kdc.folder / "alice.keytab"
    kdc.service_key(keytab, "alice", "-norandkey")
    kdc.run("kinit", "-c", f"FILE:{cache}", "-k", "-t", str(keytab), "-S", SERVICE, "alice")
    monkeypatch.setenv("KRB5CCNAME", str(cache))
    server = acceptors(keytab=kdc.keytab).accept(AuthType.SPNEGO, AuthLevel.PRIVACY, "")
    cipher, key, token = kerberosv5.getKerberosType1("alice", "", REALM, "", "", targetName="localhost")
    cipher, key, token = kerberosv5.getKerberosType3(cipher, key, server.step(token))
    answer = NegTokenResp.parse(server.step(token))
    assert answer.state == NegState.ACCEPT_COMPLETED
    assert server.caller.token.name == "alice"
    peer = gssapi.GSSAPI(cipher)
    for sequence in range(3):
        sealed, token = peer.GSS_Wrap(key, b"request " * 8, sequence)
        clear = server.unprotect(b"", sealed, b"", token, privacy=True, sign_header=False)
        assert clear == b"request " * 8
        sealed, token = server.protect(b"", b"answers " * 8, b"", privacy=True, sign_header=False)
        trailer = SEC_TRAILER().getData()
        answer, _ = peer.GSS_Unwrap(key, sealed, sequence, direction="init", authData=trailer + token)
        assert answer[:64] == b"answers " * 8


@with_kdc
@pytest.mark.needs(modules=["krb5"])
@pytest.mark.long(seconds=2)
def test_pyspnego_logs_on(kdc: Kdc) -> None:
    import spnego
    from spnego.iov import BufferType

    for protocol, auth_type in (("kerberos", AuthType.KERBEROS), ("negotiate", AuthType.SPNEGO)):
        server = acceptors(keytab=kdc.keytab).accept(auth_type, AuthLevel.PRIVACY, "")
        client = spnego.client(
            f"alice@{REALM}",
            "alice",
            hostname="localhost",
            service="host",
            protocol=protocol,
            context_req=spnego.ContextReq.default | spnego.ContextReq.dce_style,
        )
        token = client.step()
        while token:
            answer = server.step(token)
            token = client.step(answer) if answer else None
        assert server.caller.token.name == "alice"
        signed = BufferType.sign_only
        sealed = client.wrap_iov([BufferType.header, (signed, b"head"), b"request " * 4, (signed, b"tail")])
        made, _, stub, _ = (buffer.data for buffer in sealed.buffers)
        clear = server.unprotect(b"head", stub, b"tail", made, privacy=True, sign_header=True)
        assert clear == b"request " * 4
        stub, made = server.protect(b"HEAD", b"answers " * 4, b"TAIL", privacy=True, sign_header=True)
        back = client.unwrap_iov([(BufferType.header, made), (signed, b"HEAD"), stub, (signed, b"TAIL")])
        assert back.buffers[2].data == b"answers " * 4


# ---- whose token it is


def test_who_a_principal_is() -> None:
    users = Users.new(counting())
    users.add("alice", uid=None, groups=["administrators"])
    users.add("carol@OTHER.TEST", uid=None, groups=["administrators"])
    principals = Principals(lambda: users, own_uid=0)

    def name(principal: str) -> str:
        token = principals.of_principal(principal, REALM)
        assert token.administrator == (token.name in ("alice", "carol@OTHER.TEST"))
        return token.name

    assert name(f"alice@{REALM}") == "alice"
    assert name(f"ALICE@{REALM}") == "alice"
    assert name("carol@OTHER.TEST") == "carol@OTHER.TEST"
    # Nobody is taken for an account of another realm, host or name.
    for principal in ("alice@OTHER.TEST", f"alice/admin@{REALM}", f"alice\\@{REALM}@{REALM}", "alice", "@"):
        assert name(principal) == principal


@pytest.mark.long(seconds=1)
@pytest.mark.needs(modules=["gssapi"])
def test_a_ticket_of_nobody_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    from msmq_fast.rpc.auth import kerberos

    anonymous = SimpleNamespace(
        context=None,
        more_steps=False,
        flags=kerberos.gss.RequirementFlag.dce_style | kerberos.gss.RequirementFlag.anonymity,
        initiator_name=None,
        token=b"",
    )
    monkeypatch.setattr(kerberos.gss, "accept_sec_context", lambda *_, **__: anonymous)
    server = SimpleNamespace(credentials=None)
    acceptor = kerberos.KerberosAcceptor(server, AuthLevel.CONNECT)  # type: ignore[arg-type]
    with pytest.raises(AuthError, match="anonymous") as refused:
        acceptor.step(b"ticket")
    assert refused.value.failure is AuthFailure.LOGON
    assert not acceptor.complete
