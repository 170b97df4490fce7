"""`security.profile`: groups of defaults, and `mqqb.allow`."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from uuid import UUID

import pytest

from msmq_fast.config.loading import load
from msmq_fast.config.mistakes import ConfigError
from msmq_fast.config.profiles import PROFILES
from msmq_fast.config.sections import SECTIONS, keys_of
from msmq_fast.packet.session import Ping
from msmq_fast.server.net.allowed import allowed_addresses
from tests.support.mqqb import wire
from tests.support.processes.servers import Server, command, data_directory

HARDENED = {"MSMQ_FAST_SECURITY__PROFILE": "hardened", "MSMQ_FAST_MQQB__ALLOW": "127.0.56.0/24"}


def test_hardened_changes_what_it_says_and_explicit_keys_win(tmp_path: Path) -> None:
    config = load(None, HARDENED, {})
    for name, value in PROFILES["hardened"].items():
        section, _, key = name.rpartition(".")
        assert getattr(config.section(section), key) == value, name
    file = tmp_path / "msmq.toml"
    file.write_text("[rpc]\nanonymous = true\n[listen.mqqb]\nping_port = 3527\n")
    flags = {"listen.rpc.port": "2103"}
    config = load(file, {**HARDENED, "MSMQ_FAST_BULK__ACCESS": "off"}, flags)
    assert (config.rpc.anonymous, config.listen.mqqb.ping_port, config.listen.rpc.port) == (True, 3527, 2103)
    assert config.bulk.access == "off"
    assert config.listen.rpc.qm2qm_port is None
    assert not config.security.anonymous_may_send


def test_each_key_of_a_profile_exists_and_takes_its_value() -> None:
    for keys in PROFILES.values():
        for name, value in keys.items():
            section, _, key = name.rpartition(".")
            kind = keys_of(SECTIONS[section])[key].metadata["kind"]
            given = "off" if value is None else list(value) if isinstance(value, tuple) else value
            assert kind.check(given) == value, name


def test_hardened_needs_a_list_of_addresses() -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, {"MSMQ_FAST_SECURITY__PROFILE": "hardened"}, {})
    (mistake,) = caught.value.mistakes
    assert 'security.profile = "hardened" needs mqqb.allow' in str(mistake)
    done = command("check-config", environment={"MSMQ_FAST_SECURITY__PROFILE": "hardened"})
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"needs mqqb.allow" in done.stderr
    done = command("check-config", environment=HARDENED)
    assert re.search(rb"profile:? +hardened", done.stdout)


def test_the_documented_keys_are_those_of_the_profile() -> None:
    page = Path("docs/how-to/security.md").read_text(encoding="utf-8")
    table = page.partition("## Profiles")[2].partition("\n## ")[0]
    rows = {
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+(?:\.\w+)+)`", line)
    }
    assert rows == set(PROFILES["hardened"])


@pytest.mark.parametrize(
    ("networks", "address", "expected"),
    [
        ((), "203.0.113.9", True),
        (("10.0.0.0/8",), "10.1.2.3", True),
        (("10.0.0.0/8",), "11.1.2.3", False),
        (("10.0.0.0/8",), "::ffff:10.1.2.3", True),
        (("2001:db8::/32", "10.0.0.7"), "2001:db8::1", True),
        (("2001:db8::/32", "10.0.0.7/32"), "10.0.0.7", True),
        (("fe80::/10",), "fe80::1%eth0", True),
        (("0.0.0.0/0",), "::1", False),
        (("10.0.0.0/8",), "not an address", False),
    ],
)
def test_addresses(networks: tuple[str, ...], address: str, expected: bool) -> None:
    assert allowed_addresses(networks)(address) is expected


def test_a_wrong_network_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"expected addresses or networks such as 10\.1"):
        load(None, {"MSMQ_FAST_MQQB__ALLOW": "10.0.0.1/8"}, {})


def opens_a_session(source: str, server: Server) -> bool:
    """Whether the server answers an EstablishConnection packet (MS-MQQB 2.2.3) from this address."""
    with socket.create_connection(
        (server.host, server.port("mqqb")), timeout=10, source_address=(source, 0)
    ) as peer:
        try:
            peer.sendall(wire.establish())
            return bool(peer.recv(1))
        except ConnectionError:
            return False


def answers_a_ping(source: str, server: Server) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind((source, 0))
        peer.settimeout(0.5)
        peer.sendto(Ping(7, UUID(int=0)).encode(), (server.host, server.port("ping")))
        try:
            return len(peer.recv(100)) > 0
        except TimeoutError:
            return False


def test_only_listed_hosts_open_sessions_and_get_answers_to_pings() -> None:
    with data_directory() as data:
        server = Server(data, host="127.0.56.30", environment={"MSMQ_FAST_MQQB__ALLOW": "127.0.56.31"})
        server.start()
        try:
            assert opens_a_session("127.0.56.31", server)
            assert answers_a_ping("127.0.56.31", server)
            assert not opens_a_session("127.0.56.32", server)
            assert not answers_a_ping("127.0.56.32", server)
            refusals = server.ok("stats")[0]["refusals"]
            assert refusals["session: address not allowed"] == 1
            assert "127.0.56.32" in server.log.read_text()
        finally:
            server.kill()


def test_a_hardened_server_listens_at_1801_only() -> None:
    with data_directory() as data:
        server = Server(data, host="127.0.56.33", environment=HARDENED)
        server.free_ports = ("--port", "--admin-port")
        server.start()
        try:
            assert set(server.ready) - {"name", "guid"} == {"mqqb", "admin", "app"}
            server.ok("queue", "create", "orders")
            entries = server.ok("acl", "show", "orders")
            assert not any("LC" in str(entry) and ";AN)" in str(entry) for entry in entries)
        finally:
            server.kill()
