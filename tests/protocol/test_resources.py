"""The forms of the things that operators see: what goes into a map comes back, in spite of other versions."""

import pytest

from msmq_fast.protocol.resources import (
    ConnectionAttempt,
    IncomingTransferInfo,
    OutgoingQueueInfo,
    QueueInfo,
    ReaderInfo,
    Resource,
    SessionInfo,
    SessionPage,
    TransactionInfo,
)

pytestmark = pytest.mark.smoke

STREAM = IncomingTransferInfo("DIRECT=OS:a\\private$\\q", "guid", 7 << 32 | 1, 2, 1_700_000_000, 1)
ATTEMPT = ConnectionAttempt(1_700_000_000, "failed", 0xC00E0003, ("10.0.0.7", "10.0.0.8"), "refused")


@pytest.mark.parametrize(
    "resource",
    [
        QueueInfo("host\\private$\\orders", kind="queue", subqueues=("a", "b"), security="O:BA"),
        QueueInfo("host\\private$\\orders", transactional=True, incoming=(STREAM,)),
        OutgoingQueueInfo("DIRECT=OS:b\\private$\\q", next_hops=("10.0.0.7",), history=(ATTEMPT, ATTEMPT)),
        TransactionInfo("guid", "prepared", "alice", 1, 2, 3, 4),
        ReaderInfo("host\\private$\\orders", caller="alice", cursors=3),
        SessionPage((SessionInfo(17, "program", "incoming", "local", user="alice"),), 2, 17),
    ],
)
def test_a_map_gives_the_resource_back(resource: Resource) -> None:
    assert type(resource).from_map(resource.as_map()) == resource


def test_a_map_holds_plain_values_and_leaves_out_what_is_not_shown() -> None:
    shown = OutgoingQueueInfo("b", next_hops=("10.0.0.7",), history=(ATTEMPT,)).as_map()
    assert shown["next_hops"] == ["10.0.0.7"]
    assert shown["history"][0]["addresses"] == ["10.0.0.7", "10.0.0.8"]
    assert "security" not in QueueInfo("a").as_map()
    assert "incoming" not in QueueInfo("a").as_map()
    assert QueueInfo("a", incoming=()).as_map()["incoming"] == []


def test_keys_of_later_versions_are_ignored_and_missing_ones_get_defaults() -> None:
    assert QueueInfo.from_map({"name": "a", "invented": [1]}) == QueueInfo("a")
