"""Two server processes: messages from one to the other, and the acknowledgments that come back."""

from __future__ import annotations

import pytest

from tests.support.processes.pair import collect, drained, pair
from tests.support.processes.servers import Server, until

__all__ = ["pair"]

ACKS = "reach,receive,nack-reach,nack-receive"


def prepare(pair: tuple[Server, Server]) -> tuple[Server, Server]:
    a, b = (server.start() for server in pair)
    a.ok("queue", "create", "admin")
    b.ok("queue", "create", "orders", "--journal")
    return a, b


def send(a: Server, *more: str, queue: str = "orders") -> str:
    name = rf"DIRECT=TCP:127.0.0.3\private$\{queue}"
    admin = r"DIRECT=TCP:127.0.0.2\private$\admin"
    (sent,) = a.ok(
        "send", name, "--body", "hello", "--recoverable", "--admin-queue", admin, "--ack", ACKS, *more
    )
    return str(sent["message_id"])


def answer(a: Server, message_id: str, reason: int) -> dict[str, object]:
    """The next acknowledgment, which must be that of a message."""
    (found,) = until(lambda: a.messages("admin", 1), 20, "an acknowledgment")
    assert found["class"] == reason
    guid, _, ordinal = message_id.partition("\\")
    raw = bytes.fromhex(str(found["correlation_id"]))
    assert int.from_bytes(raw[16:], "little") == int(ordinal)
    assert guid.strip("{}")[:8] == raw[3::-1].hex()
    assert found["response_queue"] == r"DIRECT=TCP:127.0.0.3\private$\orders"
    assert found["delivery"] == "recoverable"
    return found


@pytest.mark.rule("QB-293", "QB-357", "QB-359", "QB-387", "QB-388", "QB-389", "QB-392", "X-60", "X-61")
def test_arrival_and_receive_are_acknowledged_across_machines(pair: tuple[Server, Server]) -> None:
    a, b = prepare(pair)
    message_id = send(a, "--journal")
    assert answer(a, message_id, 0x0002)["body_size"] == 0
    until(lambda: drained(a), 20, "the outgoing queue of A is empty")
    (kept,) = collect(a, r".\system$;journal", 1)
    assert (kept["message_id"], kept["class"], kept["reason"]) == (message_id, 0, 0)
    (received,) = collect(b, "orders", 1)
    assert received["message_id"] == message_id
    assert answer(a, message_id, 0x4000)["body_size"] == 0
    (copy,) = collect(b, "orders;journal", 1)
    assert copy["message_id"] == message_id


@pytest.mark.rule("QB-360", "QB-391", "X-64", "X-66")
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("purge", 0xC001),
        pytest.param("expire", 0xC002, marks=pytest.mark.long(seconds=8)),
        ("delete", 0xC000),
    ],
)
def test_what_is_not_received_is_answered_and_kept(
    pair: tuple[Server, Server], how: str, reason: int
) -> None:
    a, b = prepare(pair)
    message_id = send(a, "--deadletter", *(("--ttbr", "5") if how == "expire" else ()))
    answer(a, message_id, 0x0002)
    if how != "expire":
        b.ok("queue", how, "orders")
    assert answer(a, message_id, reason)["body_size"] == 5
    (dead,) = collect(b, r".\system$;deadletter", 1)
    assert (dead["message_id"], dead["class"], dead["reason"]) == (message_id, reason, reason)


@pytest.mark.rule("QB-329", "QB-330", "X-62", "DM-215")
def test_what_is_not_sent_in_time_is_answered_and_kept_by_its_sender(pair: tuple[Server, Server]) -> None:
    a, _ = pair
    a.start()
    a.ok("queue", "create", "admin")
    a.ok("queue", "create", "failed")
    message_id = send(a, "--deadletter", "--ttrq", "1")
    other = send(a, "--deadletter", "--ttrq", "1", "--dead-letter-queue", "failed")
    assert {item["class"] for item in collect(a, "admin", 2)} == {0x8002}
    (dead,) = collect(a, r".\system$;deadletter", 1)
    assert (dead["message_id"], dead["reason"]) == (message_id, 0x8002)
    (own,) = collect(a, "failed", 1)
    assert (own["message_id"], own["reason"]) == (other, 0x8002)


@pytest.mark.rule("QB-083", "QB-084", "QB-384")
@pytest.mark.parametrize("insecure", [False, True])
def test_an_unknown_queue_is_answered_only_where_the_configuration_allows_it(
    pair: tuple[Server, Server], insecure: bool
) -> None:
    a, b = pair
    b.environment = {**b.environment, "MSMQ_FAST_MQQB__INSECURE_NACKS": "true" if insecure else "false"}
    prepare(pair)
    send(a, queue="nothing")
    message_id = send(a)
    found = collect(a, "admin", 2 if insecure else 1)
    assert sorted(item["class"] for item in found) == ([0x0002, 0x8000] if insecure else [0x0002])  # type: ignore[type-var]
    assert message_id
    assert b.process is not None
