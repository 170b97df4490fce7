"""Acknowledgments between queue managers are used up without an event: an audit must not miss them."""

from __future__ import annotations

import re

import pytest

from msmq_fast.packet.names import parse_format_name
from msmq_fast.qm.queues.system import is_internal
from msmq_fast.spark.lake.lifecycle import INTERNAL_QUEUE

GUID = "083867ce-6e70-40d4-8940-51d0356f5179"


@pytest.mark.parametrize(
    ("name", "internal"),
    [
        (rf"PRIVATE={GUID}\00000001", True),
        (rf"PRIVATE={GUID}\00000003", True),
        (rf"PRIVATE={GUID}\00000004", True),  # FinalAcks through a router
        (r"DIRECT=TCP:127.0.0.1\PRIVATE$\order_queue$", True),
        (r"DIRECT=OS:host\private$\Notify_Queue$", True),
        (r"DIRECT=OS:host\private$\admin_queue$", True),
        (rf"PRIVATE={GUID}\00000002", False),
        (rf"PRIVATE={GUID}\00000014", False),
        (rf"PRIVATE={GUID}\00000040", False),
        (r"DIRECT=OS:host\private$\orders", False),
        (r"DIRECT=OS:host\private$\order_queue$s", False),
    ],
)
def test_the_lake_knows_the_queues_that_the_queue_manager_knows(name: str, internal: bool) -> None:
    assert is_internal(parse_format_name(name)) is internal
    assert bool(re.search(INTERNAL_QUEUE, name)) is internal
