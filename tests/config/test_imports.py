"""Reading a configuration loads no native module and nothing of the server: commands wait for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.smoke

PROGRAM = """
import sys
from msmq_fast.config.loading import load
load(None, {}, {})
print(*sys.modules)
"""


def test_the_defaults_need_neither_native_modules_nor_the_queue_manager() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "msmq_fast.config.sections" in loaded
    heavy = ("msmq_fast._native", "msmq_fast.qm.queues", "msmq_fast.store", "msmq_fast.server", "asyncio")
    assert {name for name in loaded if name.startswith(heavy)} == set()
