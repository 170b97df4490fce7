"""Redirection and signatures in the configuration: TOML, mapping files, one line for a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from msmq_fast.config.sections import SrmpConfig, keys_of
from msmq_fast.protocol.properties import HashAlgorithm
from msmq_fast.qm.identity.certificates import Certificates
from msmq_fast.security.keyturns import KeyTurns
from msmq_fast.security.vault import Vault
from msmq_fast.server.declarations import DeclarationError
from msmq_fast.server.srmp.names import redirections, redirector, verifier
from msmq_fast.srmp.redirection import Pair, Redirections
from msmq_fast.srmp.urls import parse_url
from tests.srmp.mappings import INBOUND, OUTBOUND, RECEIPTS
from tests.support.worlds.queue_manager import World


def configured(**values: object) -> SrmpConfig:
    """As the TOML values say."""
    config = SrmpConfig()
    for name, value in values.items():
        setattr(config, name, keys_of(SrmpConfig)[name].metadata["kind"].check(value))
    return config


@pytest.mark.rule("SR-112", "SR-113")
def test_without_a_word() -> None:
    assert redirections(SrmpConfig()) == Redirections()


@pytest.mark.rule("SR-112", "SR-113")
def test_what_the_configuration_says() -> None:
    """Both settings stand in the file and so outlive the process."""
    found = redirections(
        configured(
            inbound=["http://www.example.com/msmq/* -> http://inner/msmq/private$/q"],
            outbound=["*->http://relay"],
            outbound_exceptions=["http://near/*"],
            stream_receipts="http://far/* -> http://nat/msmq/private$/order_queue$",
            default_stream_receipt="https://nat/msmq/private$/order_queue$",
            store_and_forward=True,
        )
    )
    assert found == Redirections(
        inbound=(Pair("http://www.example.com/msmq/*", "http://inner/msmq/private$/q"),),
        outbound=(Pair("*", "http://relay"),),
        exceptions=("http://near/*",),
        stream_receipts=(Pair("http://far/*", "http://nat/msmq/private$/order_queue$"),),
        default_stream_receipt="https://nat/msmq/private$/order_queue$",
        transparent=True,
    )


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("inbound", ["http://a/msmq/q"], 'expected "http://from'),
        ("inbound", ["a -> http://b"], 'expected "http://from'),
        ("outbound", ["http://a -> b"], 'expected "http://from'),
        ("stream_receipts", ["http://*/q -> http://b", 1], "expected a text or a list"),
        ("outbound_exceptions", ["near"], "expected URLs such as"),
        pytest.param(
            "default_stream_receipt",
            "order_queue$",
            "expected a URL such as",
            marks=pytest.mark.rule("SR-113"),
        ),
        (
            "signature_digests",
            ["sha1", "sha3"],
            'expected one or more of sha1, md5, sha256, sha512, got "sha3"',
        ),
    ],
)
def test_mistakes(key: str, value: object, says: str) -> None:
    with pytest.raises(ValueError) as caught:
        configured(**{key: value})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_environment_variables() -> None:
    kind = keys_of(SrmpConfig)["inbound"].metadata["kind"]
    assert kind.from_text("http://a/* -> http://b, http://c -> http://d") == (
        Pair("http://a/*", "http://b"),
        Pair("http://c", "http://d"),
    )


@pytest.mark.rule("SR-113")
def test_a_directory_of_mapping_files(tmp_path: Path) -> None:
    (tmp_path / "2.XML").write_bytes(RECEIPTS)
    (tmp_path / "1.xml").write_bytes(INBOUND)
    (tmp_path / "3.xml").write_bytes(OUTBOUND)
    (tmp_path / "readme.txt").write_text("not a mapping")
    found = redirections(configured(mapping=str(tmp_path), inbound=["http://first -> http://x"]))
    assert [pair.source for pair in found.inbound] == [
        "http://first",
        "http://www.example.com/msmq/orders*",
        "http://www.example.com/msmq/a&b",
    ]
    assert len(found.outbound) == len(found.stream_receipts) == 1
    assert found.default_stream_receipt == "https://nat.example.com/msmq/private$/order_queue$"


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    file = tmp_path / "wrong.xml"
    file.write_text("<redirections>\n<redirection/></redirections>")
    with pytest.raises(DeclarationError) as caught:
        redirections(configured(mapping=str(tmp_path)))
    assert str(caught.value).startswith(f"{file}: line 2: <redirection> needs one")
    with pytest.raises(DeclarationError, match=r"srmp\.mapping: .*missing: No such file"):
        redirections(configured(mapping=str(tmp_path / "missing")))


def test_the_public_host() -> None:
    world = World()
    directory = world.manager.registry
    receipts = [
        redirector(configured(**values), directory, World(**settings).settings).receipts_to("http://far/q")
        for values, settings in (
            ({}, {}),
            ({}, {"advertised": "nat.example.com"}),
            ({"public_host": "www.example.com"}, {"advertised": "nat.example.com"}),
        )
    ]
    assert [parse_url(url).host for url in receipts] == [
        "host.example.net",
        "nat.example.com",
        "www.example.com",
    ]


def test_the_policy_of_signatures() -> None:
    world = World()
    manager = world.manager
    vault = Vault(bytes(32), manager.random_bytes)
    certificates = Certificates(manager.services, manager.directory, vault)
    settings = configured(signature_digests="sha256", unregistered_certificates=False)
    made = verifier(settings, certificates, KeyTurns(0.1), lambda: 0.0)
    assert made.policy.digests == {HashAlgorithm.SHA256}
    assert not made.policy.unregistered
