"""The blocking client, and what importing the package costs."""

from __future__ import annotations

import re
import subprocess
import sys
import threading

import pytest

import msmq_fast
from msmq_fast import Message, errors, sync
from tests.client.connecting import path

__all__ = ["path"]


def test_everything_once(path: str) -> None:
    with sync.connect(path) as connection:
        connection.admin.queues.create("orders", label="Orders")
        assert connection.admin.queues.get("orders").label == "Orders"
        assert connection.computer_name == "here"
        with connection.open("orders") as queue:
            sent = queue.send(b"one", delivery=1)
            assert queue.peek(1).message_id == sent
            assert queue.receive(1).message_id == sent
            with pytest.raises(errors.IOTimeout):
                queue.receive(0)
            assert len(queue.send_many(Message(b"%d" % n) for n in range(3000))) == 3000
            with queue.subscribe(credit=100, acknowledge=False) as messages:
                got = 0
                while got < 2000:
                    got += len(messages.batch())
            with queue.subscribe() as messages:
                first = messages.batch(5)
                messages.acknowledge(first[0], first[-1])
            for message in queue:
                assert message.lookup_id
                break
            assert queue.purge() > 0
        changed = connection.admin.access.deny("orders", "anonymous", "send")
        assert changed == connection.admin.access.get("orders")
        assert connection.admin.access.explain("orders", "anonymous", "send").entry == changed.entries[0]
        connection.admin.queues.delete("orders")
        assert connection.admin.queues.all() == []


def test_threads_share_a_connection(path: str) -> None:
    with sync.connect(path) as connection:
        connection.admin.queues.create("orders")
        queue = connection.open("orders")
        threads = [threading.Thread(target=queue.send, args=(b"x",)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert connection.admin.queues.get("orders").messages == 20


def test_importing_the_package_is_light() -> None:
    code = (
        "import sys, msmq_fast; heavy = ('asyncio', 'msgpack', 'msmq_fast.')\n"
        "print([name for name in sys.modules if name.startswith(heavy)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_all_names_are_there() -> None:
    import msmq_fast

    assert [name for name in msmq_fast.__all__ if not hasattr(msmq_fast, name)] == []
    assert set(msmq_fast.__all__) <= set(dir(msmq_fast))
    with pytest.raises(AttributeError):
        msmq_fast.nothing  # noqa: B018


def test_a_sender_ends_with_everything_acknowledged(path: str) -> None:
    with sync.connect(path) as connection:
        connection.admin.queues.create("orders")
        with connection.open("orders") as queue:
            with queue.sender(window=4) as sender:
                for number in range(20):
                    sender.send(Message(str(number).encode()))
            assert sender.acknowledged == 20
            assert [queue.receive(1).body for _ in range(20)] == [
                str(number).encode() for number in range(20)
            ]


def test_classes_have_twins_and_docstrings_speak_of_blocking_calls() -> None:
    classes = [
        one
        for one in vars(sync).values()
        if isinstance(one, type) and one.__module__.startswith(sync.__name__)
    ]
    assert {"Connection", "Cursor", "Queue", "Sender", "Subscription", "Transaction"} <= {
        one.__name__ for one in classes if one.__name__ in msmq_fast.__all__
    }
    documented = [sync.connect, *classes, *(found for one in classes for found in vars(one).values())]
    for one in documented:
        assert not re.search(
            r"\b(async|await)\b", (getattr(one, "__doc__", None) or "").replace("with asyncio", "")
        )


def test_keywords_win_over_the_properties_of_a_message(path: str) -> None:
    message = Message(b"one", label="mine")
    with sync.connect(path) as connection:
        connection.admin.queues.create("orders")
        with connection.open("orders") as queue:
            queue.send(message, label="other", priority=6)
            received = queue.receive(1)
    assert (received.body, received.label, received.priority) == (b"one", "other", 6)
    assert message.label == "mine"
