"""How long fuzzers run."""

from __future__ import annotations

import os

SECONDS = "MSMQ_FAST_FUZZ_SECONDS"


def seconds(default: int = 600) -> int:
    """How long a fuzzer runs in `make test-long`."""
    return int(os.environ.get(SECONDS, default))
