"""The alert rules of contrib/monitoring: their metrics exist, and promtool runs their tests."""

from __future__ import annotations

import re
import subprocess
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.support.processes.servers import Server, data_directory

FOLDER = Path(__file__).parents[2] / "contrib" / "monitoring"
RULES = FOLDER / "alerts.yml"


def test_every_metric_of_the_rules_exists_in_a_live_server() -> None:
    expressions = re.findall(r"^ +expr: (.+)$", RULES.read_text(encoding="utf-8"), re.MULTILINE)
    used = {name for text in expressions for name in re.findall(r"\b(?:msmq_fast|windows_msmq)_\w+", text)}
    assert len(expressions) == RULES.read_text(encoding="utf-8").count("- alert:")
    assert len(used) >= len(expressions)
    with data_directory() as data:
        server = Server(data)
        try:
            server.start()
            connection = HTTPConnection(server.host, server.port("admin"), timeout=10)
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
            connection.close()
        finally:
            server.kill()
    assert used - set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE)) == set()


@pytest.mark.long(seconds=2)
def test_the_rules_fire_when_they_should() -> None:
    """Needs promtool, from Debian's package prometheus; the test fails without it."""
    for words in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        done = subprocess.run(["promtool", *words], cwd=FOLDER, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
