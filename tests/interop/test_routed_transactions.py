"""The routing recipe of docs/how-to/routing.md, as it is written there, with transactional messages.

Sender, router and receiver are in a workgroup; only the hosts that send know a route.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.pair import free_port
from tests.support.processes.servers import Server, data_directory, until

SENDER, ROUTER, RECEIVER = "127.0.53.11", "127.0.53.12", "127.0.53.13"
COUNT = 20


def configured(directory: Path, text: str) -> tuple[str, str]:
    file = directory.parent / "server.toml"
    file.write_text(text, encoding="utf-8")
    return "--config", str(file)


@pytest.fixture
def line() -> Iterator[tuple[Server, Server, Server]]:
    port = str(free_port())
    with data_directory() as first, data_directory() as second, data_directory() as third:
        receiver = Server(third, "--port", port, "--name", "RECEIVER", host=RECEIVER)
        servers = [receiver]
        try:
            receiver.start()
            receiver.ok("queue", "create", "tx", "--transactional")
            guid = str(receiver.ready["guid"])
            sending = f'[[routes]]\ndestination = "{guid}"\nvia = ["{ROUTER}"]\n'
            routing = f'[mqqb]\nrouter = true\n[[routes]]\ndestination = "{guid}"\nvia = "{RECEIVER}"\n'
            options = ("--port", port, "--name")
            router = Server(second, *options, "ROUTER", *configured(second, routing), host=ROUTER)
            sender = Server(first, *options, "SENDER", *configured(first, sending), host=SENDER)
            servers += [router, sender]
            router.environment["MSMQ_FAST_MQQB__IDLE_TIMEOUT"] = "1s"  # for the second half of the test
            router.start()
            sender.start()
            yield sender, router, receiver
        finally:
            for server in servers:
                server.kill()


def sessions(server: Server) -> int:
    return int(server.ok("stats")[0]["sessions"])


def test_transactional_messages_through_a_router_are_acknowledged(
    line: tuple[Server, Server, Server],
) -> None:
    sender, router, receiver = line
    name = str(receiver.ok("queue", "show", "tx")[0]["format_name"])
    assert name.startswith("PRIVATE=")
    sender.ok("send", name, "--body", "x", "--xact", "--journal", "--count", str(COUNT))

    def outgoing(field: str) -> int:
        return int(sender.ok("outgoing", "show", name)[0][field])

    until(lambda: outgoing("no_ack_count") == 0 and outgoing("no_read_count") == COUNT, 20, "OrderAcks")
    # Much later the messages are read: no session is open any more, and the way back is still known.
    until(lambda: sessions(router) == 0, 20, "the end of the sessions")
    assert len(receiver.messages("tx")) == COUNT
    until(lambda: outgoing("messages") == 0, 20, "FinalAcks")
    assert len(sender.messages(r".\system$;JOURNAL")) == COUNT
    assert sender.ok("stats")[0]["resends"] == 0
    assert receiver.ok("stats")[0]["refusals"] == router.ok("stats")[0]["refusals"] == {}
