"""A sender, a router and a receiver as processes: messages by private names pass through the router."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.processes.chain import HOSTS, free_port
from tests.support.processes.servers import Server, data_directory, until

COUNT = 500


@dataclass
class Line:
    sender: Server
    router: Server
    receiver: Server
    name: str


def routes(directory: Path, receiver: str, via: str) -> str:
    """A configuration file with one static route."""
    file = directory.parent / f"{directory.name}.toml"
    file.write_text(f'[[routes]]\ndestination = "{receiver}"\nvia = "{via}"\n', encoding="utf-8")
    return str(file)


@pytest.fixture
def line() -> Iterator[Line]:
    port = str(free_port())
    environment = {"MSMQ_FAST_MQQB__RETRY_INTERVAL": "0.3"}
    with data_directory() as first, data_directory() as second, data_directory() as third:
        receiver = Server(third, "--port", port, "--name", "RECEIVER", host=HOSTS[2], environment=environment)
        receiver.start()
        receiver.ok("queue", "create", "inbox")
        guid = str(receiver.ready["guid"])
        name = str(receiver.ok("queue", "show", "inbox")[0]["format_name"])
        options = ("--port", port, "--name")
        sender = Server(
            first,
            *options,
            "SENDER",
            "--config",
            routes(first, guid, HOSTS[1]),
            host=HOSTS[0],
            environment=environment,
        )
        router = Server(
            second,
            *options,
            "ROUTER",
            "--config",
            routes(second, guid, HOSTS[2]),
            host=HOSTS[1],
            environment=environment | {"MSMQ_FAST_MQQB__ROUTER": "true"},
        )
        try:
            yield Line(sender, router, receiver, name)
        finally:
            for server in (sender, router, receiver):
                server.kill()


def drained(*servers: Server) -> bool:
    return all(queue["messages"] == 0 for server in servers for queue in server.ok("outgoing", "list"))


@pytest.mark.rule("QB-234", "QB-366")
def test_messages_pass_through_a_router_that_is_killed_meanwhile(line: Line) -> None:
    line.sender.start()
    line.router.start()
    assert line.name.startswith("PRIVATE=")
    line.sender.ok("send", line.name, "--body", "x", "--recoverable", "--count", str(COUNT))
    line.router.kill()
    line.router.start()
    until(lambda: drained(line.sender, line.router), 20, "empty outgoing queues")
    arrived = line.receiver.messages("inbox")
    ordinals = [int(str(message["message_id"]).split("\\")[1]) for message in arrived]
    assert ordinals == sorted(ordinals)
    assert len(arrived) == COUNT
    assert {message["source_machine"] for message in arrived} == {line.sender.ready["guid"]}


def test_what_an_operator_sees_of_a_connection(line: Line) -> None:
    line.sender.start()
    line.sender.ok("send", line.name, "--body", "x", "--recoverable")

    def refused() -> bool:
        (queue,) = line.sender.ok("outgoing", "list")
        statuses = {str(event["status"]) for event in queue["history"]}
        return "socket_connect_failure" in statuses

    until(refused, 20, "a failed connection")
    shown = line.sender.run("outgoing", "show", line.name).stdout.decode()
    assert "socket_connect_failure" in shown
    assert "0x8007274D" in shown
    assert HOSTS[1] in shown
    (queue,) = line.sender.ok("outgoing", "list")
    assert queue["state"] == "waiting"
    assert queue["manager"] == line.receiver.ready["guid"]
    line.router.start()
    until(lambda: line.sender.ok("outgoing", "list")[0]["state"] == "connected", 20, "a session")


def test_a_name_that_turns_out_to_mean_this_computer_leads_to_the_local_queue() -> None:
    with data_directory() as directory:
        server = Server(directory, "--name", "ALPHA", "--port", str(free_port()), host="0.0.0.0")  # noqa: S104
        try:
            server.start()
            server.ok("queue", "create", "inbox")
            name = "DIRECT=TCP:127.0.0.77\\private$\\inbox"
            server.ok("send", name, "--body", "x", "--recoverable", "--count", "5")
            until(lambda: server.ok("queue", "show", "inbox")[0]["messages"] == 5, 20, "the messages")
            server.ok("send", name, "--body", "y", "--recoverable")
            assert server.ok("queue", "show", "inbox")[0]["messages"] == 6
            assert [queue["messages"] for queue in server.ok("outgoing", "list")] == [0]
            assert server.ok("stats")[0]["refusals"] == {}
        finally:
            server.kill()


def test_a_queue_manager_that_is_no_router_refuses_what_is_not_for_it(line: Line) -> None:
    line.router.environment.pop("MSMQ_FAST_MQQB__ROUTER")
    line.sender.start()
    line.router.start()
    line.sender.ok("send", line.name, "--body", "x", "--recoverable")
    refused = "session: message for another queue manager, but routing is off here (mqqb.router)"
    until(lambda: refused in line.router.ok("stats")[0]["refusals"], 20, "the refusal")
    assert [queue["messages"] for queue in line.sender.ok("outgoing", "list")] == [1]
    assert line.router.ok("outgoing", "list") == []
