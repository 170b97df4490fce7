"""The client without asyncio is what tools/syncclient.py makes of the one with it."""

from __future__ import annotations

import inspect

import pytest

from msmq_fast import sync
from msmq_fast.client import connection, queue
from tools import syncclient

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("file", syncclient.FILES)
def test_the_files_are_up_to_date(file: str) -> None:
    assert syncclient.target(file).read_text(encoding="utf-8") == syncclient.Generator(file).generate()


def test_a_file_that_differs_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncclient, "HEAD", "# other\n")
    assert syncclient.main([]) == 1
    assert "python -m tools.syncclient --write" in capsys.readouterr().out


def test_both_clients_have_the_same_names() -> None:
    for theirs, ours in ((connection.Connection, sync.Connection), (queue.Queue, sync.Queue)):
        public = {name for name in dir(theirs) if not name.startswith("_")} - syncclient.INSIDE
        assert {name for name in public if inspect.isfunction(getattr(theirs, name))} <= set(dir(ours))
    assert (
        inspect.signature(sync.connect).parameters.keys()
        == inspect.signature(connection.connect).parameters.keys()
    )
