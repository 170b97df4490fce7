"""The configuration: where values come from, and how mistakes are explained."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from msmq_fast.config.kinds import Kind
from msmq_fast.config.loading import load
from msmq_fast.config.mistakes import ConfigError
from msmq_fast.config.sections import (
    SECTIONS,
    Config,
    DirectoryConfig,
    MqqbConfig,
    QueueManagerConfig,
    keys_of,
)
from msmq_fast.mqqb.timers import Timers
from msmq_fast.qm.settings import QueueManagerSettings
from msmq_fast.server.mqqb.listener import _timers
from msmq_fast.server.routing import named_routers, pinned_addresses
from msmq_fast.server.settings import queue_manager_settings

pytestmark = pytest.mark.smoke

# Texts of every kind of value; each key takes one of them that differs from its default.
SAMPLES = (
    "off",
    "on",
    "x",
    "17",
    "0640",
    "70s",
    "2 MiB",
    "2 GiB",
    "0.25",
    "4096",
    "2d",
    "10.0.0.9",
    "gate:3128",
)
SAMPLES += (
    "557358d1-9150-9595-4997-b6e611ea26c6",
    "10.0.0.8/29",
    "http://a/* -> http://b",
    "s3://bucket/path",
    "http://a/q",
    "sha256",
)


def sample(kind: Kind, default: object) -> str:
    """Return the text of a value that differs from the default."""
    for text in (*SAMPLES, *kind.described.split('"')[1::2]):
        try:
            if kind.from_text(text) != default:
                return text
        except ValueError:
            continue
    raise AssertionError(kind.described)


def read(tmp_path: Path, text: str, environment: dict[str, str] | None = None, **flags: str) -> Config:
    file = tmp_path / "msmq.toml"
    file.write_text(text, encoding="utf-8")
    return load(file, environment or {}, {name.replace("__", "."): value for name, value in flags.items()})


def mistakes(tmp_path: Path, text: str, environment: dict[str, str] | None = None, **flags: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text, environment, **flags)
    return [str(mistake).replace(f"{tmp_path}/", "") for mistake in caught.value.mistakes]


@pytest.mark.rule("QB-085", "QB-086", "QB-087", "QB-088", "QB-128", "QB-145", "QB-146", "QB-303")
@pytest.mark.rule("SR-127", "SR-131")
def test_the_timers_of_sessions_are_those_of_the_document_unless_told_otherwise() -> None:
    assert _timers(Config()) == Timers()
    assert _timers(Config(mqqb=MqqbConfig(router=True))) == Timers(session_cleanup=120)
    assert Timers().resend == (30,) * 3 + (300,) * 3 + (1_800,) * 3 + (21_600,)
    assert (Timers().session_cleanup, Timers().order_ack, Timers().order_ack_max) == (300, 0.5, 10)
    ladder = {"resend_short": 1.0, "resend_medium": 2.0, "resend_long": 3.0, "resend_final": 4.0}
    mqqb = MqqbConfig(**ladder, idle_timeout=60.0, order_ack_delay=0.25, order_ack_max=5.0)
    set_otherwise = _timers(Config(mqqb=mqqb))
    assert set_otherwise.resend == (1, 1, 1, 2, 2, 2, 3, 3, 3, 4)
    assert set_otherwise.session_cleanup == 60
    assert (set_otherwise.order_ack, set_otherwise.order_ack_max) == (0.25, 5)


@pytest.mark.rule("X-01", "X-77")
def test_what_the_queue_manager_is_told_of_sites_and_of_time_limits() -> None:
    assert QueueManagerSettings("x").long_lived == 345_600
    told = queue_manager_settings(Config())
    assert (told.sites_interval, told.long_lived) == (43_200, 345_600)
    limited = QueueManagerConfig(time_to_reach_queue=7.0)
    told = queue_manager_settings(
        Config(directory=DirectoryConfig(sites_interval=99.0), queue_manager=limited)
    )
    assert (told.sites_interval, told.long_lived) == (99, 7)


@pytest.mark.rule("QB-012", "QB-083", "QB-288")
def test_what_newer_versions_of_windows_leave_out_is_off_unless_it_is_asked_for() -> None:
    assert (Config().mqqb.ping, Config().mqqb.insecure_nacks, Config().mqqb.report_messages) == (False,) * 3
    assert not QueueManagerSettings("HOST").insecure_nacks


def test_defaults_need_no_file() -> None:
    config = load(None, {}, {})
    assert (config.listen.mqqb.port, config.listen.mqqb.ping_port, config.listen.http.port) == (
        1801,
        3527,
        None,
    )
    assert config.app_socket == config.data / "app.sock"


def test_a_file_with_every_section(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        """
        [server]
        name = "ALPHA"
        [listen.mqqb]
        host = ["127.0.0.2", "::1"]
        port = 0
        [listen]
        admin.port = "off"
        app = { socket_mode = "0660" }
        [store]
        map_size = "1 GiB"
        [mqqb]
        idle_timeout = "5m"
        retry_interval = 2
        [limits]
        connections = 10
        [log]
        format = "json"
        [[queues]]
        name = "orders"
        label = "Orders"
        [[queues]]
        name = "q2"
        [[users]]
        name = "billing"
        token = "s3"
        """,
    )
    assert config.name == "ALPHA"
    assert config.listen.mqqb.host == ("127.0.0.2", "::1")
    assert config.listen.admin.port is None
    assert config.listen.app.socket_mode == 0o660
    assert config.store.map_size == 1 << 30
    assert (config.mqqb.idle_timeout, config.mqqb.retry_interval) == (300.0, 2.0)
    assert [queue.name for queue in config.queues] == ["orders", "q2"]
    assert config.users[0].token == "s3"  # noqa: S105


def test_environment_wins_over_the_file_and_flags_over_both(tmp_path: Path) -> None:
    text = "[listen.mqqb]\nport = 1\nping_port = 1\n[listen.admin]\nport = 1\n"
    environment = {
        "MSMQ_FAST_LISTEN__MQQB__PORT": "2",
        "MSMQ_FAST_LISTEN__MQQB__PING_PORT": "2",
        "MSMQ_FAST_ENDPOINT": "unix:/x",
    }
    config = read(tmp_path, text, environment, listen__mqqb__port="3")
    assert (config.listen.mqqb.port, config.listen.mqqb.ping_port, config.listen.admin.port) == (3, 2, 1)


def test_every_key_can_come_from_the_environment() -> None:
    for section, kind in SECTIONS.items():
        for key, entry in keys_of(kind).items():
            variable = f"MSMQ_FAST_{section}__{key}".replace(".", "__").upper()
            text = sample(entry.metadata["kind"], entry.default)
            try:
                config = load(None, {variable: text}, {})
            except ConfigError as error:  # the value arrived, and does not fit to the defaults of other keys
                assert error.mistakes[0].where == "defaults", variable  # noqa: PT017
            else:
                assert getattr(config.section(section), key) != entry.default, variable


def test_an_unknown_key_is_shown_by_line_with_the_nearest_name(tmp_path: Path) -> None:
    assert mistakes(tmp_path, "[listen.mqqb]\nport = 1\n\nprot = 1801\n") == [
        'msmq.toml:4: unknown key "prot" in [listen.mqqb]; did you mean "port"?'
    ]


def test_unknown_sections_and_keys_of_list_entries(tmp_path: Path) -> None:
    text = '[sever]\nport = 1\n[[queues]]\nname = "a"\n[[queues]]\nname = "b"\ntransactionl = true\n'
    assert mistakes(tmp_path, text) == [
        'msmq.toml:1: unknown section "sever"; did you mean "server"?',
        'msmq.toml:7: unknown key "transactionl" in [[queues]]; did you mean "transactional"?',
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('port = "1801"', 'listen.mqqb.port: expected a port number from 0 to 65535 or "off", got "1801"'),
        ("port = 70000", 'listen.mqqb.port: expected a port number from 0 to 65535 or "off", got 70000'),
        ("port = true", 'listen.mqqb.port: expected a port number from 0 to 65535 or "off", got True'),
        ("name = 5", "server.name: expected text, got 5"),
        ('socket_mode = "rw"', "listen.app.socket_mode: expected file permissions in octal"),
        (
            'drain_timeout = "1 year"',
            'server.drain_timeout: invalid duration "1 year": write a number with a unit',
        ),
        ("drain_timeout = 4000", "server.drain_timeout: expected a duration from 0 s to 1 h, such as 90"),
        (
            'socket = "~nowhere/x"',
            'listen.app.socket: expected a path, got "~nowhere/x": there is no such user',
        ),
        ('tls_key = "a\\u0000b"', 'listen.app.tls_key: expected a path, got "a\\x00b"'),
        ("host = [1]", "listen.mqqb.host: expected a text or a list of texts"),
        ('name = "A B"', "server.name: expected a name of at most 15 characters without blanks"),
        ('name = "SIXTEEN-LETTERS1"', "server.name: expected a name of at most 15 characters"),
        ('aliases = ["a", "b\\\\c"]', "server.aliases: expected a name or a list of names without"),
    ],
)
def test_wrong_types_and_ranges_are_shown_by_line(tmp_path: Path, line: str, expected: str) -> None:
    section = expected.partition(":")[0].rpartition(".")[0]
    (shown,) = mistakes(tmp_path, f"# a comment\n[{section}]\n{line}\n")
    assert shown.startswith(f"msmq.toml:3: {expected}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[[queues]]\nname = "a;b;c"', "queues.name: expected the path of a queue, such as orders"),
        (
            '[[queues]]\nmulticast_address = "10.0.0.1:80"',
            "queues.multicast_address: expected a multicast",
        ),
        (
            '[[routes]]\nvia = "gate:1801"',
            "routes.via: expected a text or a list of texts: host names, addresses",
        ),
        ('[security]\nquarantine = ";"', "security.quarantine: expected the path of a queue"),
        ('[srmp]\nproxy = "gate"', "srmp.proxy: expected a text such as proxy:3128"),
    ],
)
def test_names_that_can_be_none_are_shown_by_line(tmp_path: Path, text: str, expected: str) -> None:
    assert any(shown.startswith(f"msmq.toml:2: {expected}") for shown in mistakes(tmp_path, text))


def test_a_mistake_is_one_line_whatever_it_shows(tmp_path: Path) -> None:
    shown = mistakes(tmp_path, '[server]\nname = """a\nb"""\n[log]\nlevel = """a\nb"""\n')
    assert len(shown) == 2
    assert all(line.endswith(r'got "a\x0ab"') for line in shown)


def test_all_mistakes_are_shown_at_once_also_those_of_environment_and_flags(tmp_path: Path) -> None:
    shown = mistakes(
        tmp_path,
        "[listen.mqqb]\nport = -1\nfoo = 1\n",
        {"MSMQ_FAST_LISTEN__MQQB__PROT": "1"},
        listen__mqqb__ping_port="x",
    )
    assert len(shown) == 4
    close = 'did you mean "MSMQ_FAST_LISTEN__MQQB__PORT"?'
    assert shown[2] == f"MSMQ_FAST_LISTEN__MQQB__PROT: unknown variable; {close}"
    assert shown[3].startswith("--ping-port: expected a port number")


def test_broken_toml_and_unreadable_files(tmp_path: Path) -> None:
    assert "line 2" in mistakes(tmp_path, "[listen.mqqb]\nport =\n")[0]
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path / "missing.toml", {}, {})


def test_lines_are_found_behind_multi_line_values(tmp_path: Path) -> None:
    text = '[listen.app]\nhost = [\n  "::1", # port = 5\n]\nsocket = """\nport = 1\n"""\nporf = 1\n'
    assert mistakes(tmp_path, text) == [
        'msmq.toml:8: unknown key "porf" in [listen.app]; did you mean "port"?'
    ]


def test_unknown_listeners_and_what_is_no_section(tmp_path: Path) -> None:
    assert mistakes(tmp_path, "\n[listen.htp]\nport = 1\n") == [
        'msmq.toml:2: unknown section "listen.htp"; did you mean "listen.http"?'
    ]
    assert mistakes(tmp_path, "[listen]\n\nmqqb = 1\n") == [
        'msmq.toml:3: "listen.mqqb" is a section: write [listen.mqqb]'
    ]
    assert mistakes(tmp_path, "\nlisten = 1\n") == ['msmq.toml:2: "listen" is a group: write [listen.mqqb]']


def test_a_mistake_in_an_inline_table_is_shown_by_the_line_of_the_table(tmp_path: Path) -> None:
    (shown,) = mistakes(tmp_path, "[listen]\n\napp = { port = 70000 }\n")
    assert shown.startswith("msmq.toml:3: listen.app.port: expected a port number")


def test_keys_that_contradict_each_other(tmp_path: Path) -> None:
    text = '[listen]\nhttps.port = 443\napp.port = 5\napp.tls_key = "k"\n'
    text += '[[queues]]\nname="a"\n[[queues]]\nname="A"\n'
    shown = "\n".join(mistakes(tmp_path, text))
    assert "listen.https.port needs listen.https.tls_certificate and listen.https.tls_key" in shown
    assert "must be set together" in shown
    assert '"a" is declared twice' in shown


def test_routes_are_declared(tmp_path: Path) -> None:
    text = '[[routes]]\ndestination = "*"\nvia = "gate"\n'
    text += '[[routes]]\ndestination = "far"\nvia = ["a", "10.0.0.2"]\n'
    assert [(route.destination, route.via) for route in read(tmp_path, text).routes] == [
        ("*", ("gate",)),
        ("far", ("a", "10.0.0.2")),
    ]


def test_mistakes_in_routes(tmp_path: Path) -> None:
    text = '[[routes]]\nvia = "gate"\n[[routes]]\ndestination = "far"\n'
    assert mistakes(tmp_path, text) == [
        'msmq.toml:1: [[routes]] needs a "destination"',
        'msmq.toml:3: [[routes]] needs a "via"',
    ]
    text = '[[routes]]\ndestination = "far"\nvia = "a"\n[[routes]]\ndestination = "FAR"\nvia = "b"\n'
    assert '"far" is declared twice' in "".join(mistakes(tmp_path, text))


def test_peers_are_pinned(tmp_path: Path) -> None:
    text = '[mqqb]\nrouters = ["10.0.0.1", "557358D1-9150-9595-4997-B6E611EA26C6"]\n'
    text += (
        '[[peers]]\nguid = "{557358d1-9150-9595-4997-b6e611ea26c6}"\naddresses = ["10.0.0.2", "FD00::0:1"]\n'
    )
    config = read(tmp_path, text)
    guid = UUID("557358d1-9150-9595-4997-b6e611ea26c6")
    assert named_routers(config.mqqb.routers) == {"10.0.0.1", str(guid)}
    assert pinned_addresses(config.peers) == {guid: {"10.0.0.2", "fd00::1"}}


def test_mistakes_in_peers(tmp_path: Path) -> None:
    text = '[mqqb]\nrouters = "gate"\n[[peers]]\nguid = "x"\naddresses = "host"\n[[peers]]\n'
    shown = "\n".join(mistakes(tmp_path, text))
    assert "expected a text or a list of texts: IP addresses or GUIDs" in shown
    assert 'expected a GUID, got "x"' in shown
    assert 'a text or a list of texts: IP addresses, got "host"' in shown
    assert '[[peers]] needs a "addresses"' in shown


@pytest.mark.parametrize(
    ("written", "kilobytes"),
    [
        ('"10 GiB"', 10 << 20),
        ("1", 1),
        ('"1000 B"', 1),
        ("0", 0),
        ('"unlimited"', 2**32 - 1),
        ('"auto"', None),
    ],
)
def test_a_quota_is_a_size_or_a_word(tmp_path: Path, written: str, kilobytes: int | None) -> None:
    assert read(tmp_path, f"[queue_manager]\nquota = {written}").queue_manager.quota == kilobytes


def test_a_queue_has_no_automatic_quota(tmp_path: Path) -> None:
    (shown,) = mistakes(tmp_path, '[[queues]]\nname = "q"\nquota = "auto"')
    assert shown.startswith('msmq.toml:3: queues.quota: invalid size "auto"')


@pytest.mark.parametrize("written", ["2048", '"2048"'])
def test_a_choice_between_numbers_takes_a_number(tmp_path: Path, written: str) -> None:
    assert read(tmp_path, f"[protection]\nrsa_bits = {written}").protection.rsa_bits == "2048"
    assert "rsa_bits" in mistakes(tmp_path, "[protection]\nrsa_bits = 2047")[0]
