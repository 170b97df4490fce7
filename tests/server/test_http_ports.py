"""The ports of messages over HTTP: off until they are set; 443 with a certificate, where it can be had."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from msmq_fast.config.kinds import Preferred
from msmq_fast.config.loading import load
from msmq_fast.config.sections import Config
from msmq_fast.server.net.sockets import ListenError
from msmq_fast.server.srmp.listener import bind_http
from msmq_fast.server.srmp.sending import sends_http
from tests.support.processes.servers import NO_HTTP, QUICK, Server, data_directory, without_capability

HOST = "127.0.0.93"
MISSED = 'without it, no messages arrive over HTTPS (set listen.https.port to another port or "off")'


class Unconfigured(Server):
    """With the ports of HTTP that a server has by itself."""

    defaults: Mapping[str, str] = {name: QUICK[name] for name in QUICK.keys() - NO_HTTP}


class Incapable(Unconfigured):
    """Without the right to low ports, also where root runs the tests."""

    program = without_capability("net_bind_service")


def listening(config: Config) -> dict[str, int]:
    """Bind, tell the ports, and close."""
    bound = bind_http(config)
    ports = {name: listeners[0].getsockname()[1] for name, listeners in bound.items()}
    for listener in (listener for listeners in bound.values() for listener in listeners):
        listener.close()
    return ports


@pytest.fixture
def config() -> Config:
    config = load(None, {}, {})
    config.listen.mqqb.host = (HOST,)
    return config


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((HOST, 0)) as listener:
        yield listener.getsockname()[1]


def free() -> int:
    with socket.create_server((HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.mark.rule("SR-004")
def test_without_configuration_nothing_comes_over_http(config: Config) -> None:
    assert config.listen.http.port is None
    assert config.listen.https.port == 443  # as soon as there is a certificate
    assert listening(config) == {}


@pytest.mark.rule("SR-004")
def test_a_port_that_nobody_set_is_used_if_it_is_free(config: Config) -> None:
    config.listen.http.port, config.listen.https.port = free(), Preferred(free())
    assert listening(config) == {"http": config.listen.http.port}
    config.listen.https.tls_certificate = Path("chain.pem")
    assert listening(config) == {"http": config.listen.http.port, "https": config.listen.https.port}


def test_one_that_nobody_set_is_missed_in_one_line(
    config: Config, taken: int, caplog: pytest.LogCaptureFixture
) -> None:
    config.listen.https.port, config.listen.https.tls_certificate = Preferred(taken), Path("chain.pem")
    with caplog.at_level(logging.WARNING):
        assert listening(config) == {}
    assert [record.getMessage() for record in caplog.records] == [
        f"messages over HTTPS: {HOST}:{taken} is taken by another process; {MISSED}"
    ]


def test_one_that_was_set_must_be_had(config: Config, taken: int) -> None:
    config.listen.http.port, config.listen.https.port = free(), taken
    config.listen.https.tls_certificate = Path("chain.pem")
    with pytest.raises(ListenError, match="taken by another process"):
        bind_http(config)
    assert listening_alone(config.listen.http.port)  # the other one was closed


def listening_alone(port: int) -> bool:
    """Whether nobody else has the port."""
    with socket.create_server((HOST, port)):
        return True


@pytest.mark.rule("SR-228")
@pytest.mark.parametrize(
    ("http", "https", "certificate", "sends"),
    [
        (80, Preferred(443), None, True),
        (None, Preferred(443), None, False),
        (None, Preferred(443), Path("chain.pem"), True),
        (None, None, Path("chain.pem"), False),
        (8080, None, None, True),
    ],
)
def test_messages_leave_by_http_unless_all_ports_are_off(
    config: Config, http: int | None, https: int | None, certificate: Path | None, sends: bool
) -> None:
    """Whether a port could be had does not matter: only what was configured does."""
    config.listen.http.port, config.listen.https.port = http, https
    config.listen.https.tls_certificate = certificate
    assert sends_http(config) is sends
    for sending in ("on", "off"):
        config.srmp.sending = sending
        assert sends_http(config) is (sending == "on"), "a setting counts whatever the ports are"


def test_off_is_off(config: Config) -> None:
    config.listen.http.port = config.listen.https.port = None
    config.listen.https.tls_certificate = Path("chain.pem")
    assert listening(config) == {}


@pytest.mark.needs("setpriv", rights=["protected ports"])
def test_a_server_that_may_not_have_its_port_says_so_in_one_line() -> None:
    with data_directory() as data:
        server = Incapable(data, "--http-port", "80", host=HOST)
        try:
            with pytest.raises(AssertionError, match="no ready line"):
                server.start()
            lines = [line for line in server.log.read_text().splitlines() if "over HTTP" in line]
            assert len(lines) == 1
            assert lines[0].endswith(
                f"messages over HTTP: {HOST}:80 is refused: ports below 1024 need root or "
                "CAP_NET_BIND_SERVICE"
            )
        finally:
            server.kill()


@pytest.mark.rule("SR-004")
@pytest.mark.needs(rights=["low ports"])
def test_a_server_with_the_right_to_80_listens_there() -> None:
    with data_directory() as data:
        server = Unconfigured(data, host="127.0.0.94")
        try:
            assert not {"http", "https"} & set(server.start().ready)
            assert server.stop() == 0
            server.flags = ("--http-port", "80")
            assert server.start().ready["http"] == "127.0.0.94:80"
        finally:
            server.kill()
