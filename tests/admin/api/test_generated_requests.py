"""Requests that schemathesis generates from the OpenAPI document: none makes the server fail."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from tests.support.fuzzing import seconds
from tests.support.processes.servers import Server

SECONDS = seconds(60)
pytestmark = [
    pytest.mark.long(seconds=60, fuzz=SECONDS),
    pytest.mark.timeout(SECONDS + 460),
    pytest.mark.needs(modules=("schemathesis",)),
]
LEFT_OUT = "server.snapshot"  # it writes wherever the request names a directory


def test_no_generated_request_makes_the_server_fail(server: Server) -> None:
    seed = random.randrange(2**32)
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run"),
        f"http://{server.host}:{server.port('admin')}/api/v1/openapi.json",
        *("--checks", "not_a_server_error", "--exclude-operation-id", LEFT_OUT, "--continue-on-failure"),
        *("--max-time", str(SECONDS), "--workers", "1", "--seed", str(seed), "--no-color"),
        "--suppress-health-check=filter_too_much",  # of the pattern of message identifiers
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS + 440, check=False)
    assert done.returncode == 0, f"seed {seed}\n{done.stdout}{done.stderr}"
    assert server.ok("queue", "list") is not None
