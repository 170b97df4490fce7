"""A queue that a streaming query has leased, and the checkpoint of the query: for tests of `settle`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.spark.fakequeues import Queue
from tests.spark.fakeserver import FakeServer


def leased(server: FakeServer, checkpoint: Path) -> tuple[Queue, tuple[str, ...]]:
    """A queue of five messages of which a query leased four and planned a batch of three; the verb that
    settles it. A file in `commits` commits the batch.
    """
    manager = server.manager
    queue = manager.create("leased")
    for number in range(5):
        manager.send("leased", b"%d" % number)
    manager.lease("job", "leased", 4, 0, 600.0)
    spot = {"path": queue.path, "from": 1, "to": 4, "rows": 3, "late": 0}
    offset = {
        "v": 1,
        "mode": "remove",
        "qms": {manager.guid: {"name": "fake", "inc": 1, "start": 1, "q": {queue.guid: spot}}},
    }
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True)
    (checkpoint / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps(offset)}")
    settle = ("settle", "--checkpoint", str(checkpoint), "--url", server.url, "--subscription", "job")
    return queue, settle
