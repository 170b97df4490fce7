"""Alert rules and dashboard of contrib/monitoring: their metrics exist, and promtool tests the rules."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.server.scraping import scraped, value
from tests.support.processes.servers import Server, certify, data_directory, until

FOLDER = Path(__file__).parents[2] / "contrib" / "monitoring"
CHART = FOLDER.parent / "helm" / "msmq-fast"
RULES = FOLDER / "alerts.yml"
DASHBOARD = FOLDER / "dashboard.json"


def dashboard() -> dict[str, Any]:
    return dict(json.loads(DASHBOARD.read_text(encoding="utf-8")))


def test_conditions_that_an_operator_acts_on_have_metrics(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    certify(key, certificate, "subjectAltName=IP:127.0.0.1")  # valid for one day
    config = tmp_path / "msmq.toml"
    config.write_text(
        f"[listen.app]\nhost='127.0.0.1'\nport=0\ntls_certificate='{certificate}'\ntls_key='{key}'\n"
    )
    expired = 'msmq_fast_dead_letters_total{reason="NACK_RECEIVE_TIMEOUT"}'
    with data_directory() as data:
        server = Server(data, "--config", str(config)).start()
        try:
            before = scraped(server)
            server.ok("queue", "create", "orders")
            server.ok("send", "orders", "--body", "late", "--dead-letter", "--ttbr", "0s")
            server.ok("backup", "create", str(tmp_path / "snapshot"))
            after = until(
                lambda: text if value(text := scraped(server), expired) else None, what="the dead letter"
            )
            assert server.stop() == 0
            restarted = scraped(server.start())
        finally:
            server.kill()
    snapshot, lag = "msmq_fast_last_snapshot_timestamp_seconds", "msmq_fast_loop_lag_seconds_count"
    assert (value(before, expired), value(after, expired)) == (0, 1)
    assert (value(before, "msmq_fast_ready"), value(before, snapshot)) == (1, None)
    assert value(after, snapshot) == pytest.approx(time.time(), abs=60)
    assert value(restarted, snapshot) == value(after, snapshot)
    assert value(before, lag) is not None
    expiry = 'msmq_fast_certificate_expiry_timestamp_seconds{key="listen.app.tls_certificate"}'
    assert value(before, expiry) == pytest.approx(time.time() + 86_400, abs=600)


def test_every_metric_of_the_rules_and_the_dashboard_exists_in_a_live_server() -> None:
    expressions = re.findall(r"^ +expr: (.+)$", RULES.read_text(encoding="utf-8"), re.MULTILINE)
    shown = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    names = re.findall(r"\b(?:msmq_fast|windows_msmq)_\w+", " ".join(expressions + shown))
    used = {name.removesuffix("_bucket") for name in names}
    assert len(expressions) == RULES.read_text(encoding="utf-8").count("- alert:")
    assert len(used) >= len(expressions)
    with data_directory() as data:
        server = Server(data)
        try:
            server.start()
            text = scraped(server)
        finally:
            server.kill()
    assert used - set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE)) == set()


def test_the_chart_has_the_same_rules_and_the_same_dashboard() -> None:
    """Helm cannot read files outside the chart."""
    assert (CHART / "files" / "rules.yaml").read_bytes() == RULES.read_bytes()
    assert (CHART / "files" / "dashboard.json").read_bytes() == DASHBOARD.read_bytes()


def test_the_dashboard_works_with_any_data_source_and_explains_its_panels() -> None:
    found = dashboard()
    assert [entry["name"] for entry in found["templating"]["list"]] == ["datasource", "instance"]
    panels = found["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        for target in panel["targets"]:
            assert (
                target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            )
            assert 'instance=~"$instance"' in target["expr"]
            assert "rate(" not in target["expr"] or "[$__rate_interval]" in target["expr"]


def test_each_rule_has_a_firing_case_and_series_of_a_server_that_is_well() -> None:
    rules, cases = (name.read_text(encoding="utf-8") for name in (RULES, FOLDER / "alerts_test.yml"))
    for alert in re.findall(r"- alert: (\w+)", rules):
        assert re.search(rf'alertname="{alert}",.*value: 1', cases), alert
    *_, well = cases.split("- interval:")
    used = set(re.findall(r"\bmsmq_fast_\w+", "".join(re.findall(r"expr: .+", rules))))
    assert {name for name in used if name not in well} == set()


@pytest.mark.long(seconds=2)
def test_the_rules_fire_when_they_should() -> None:
    """Needs promtool, from Debian's package prometheus; the test fails without it."""
    for words in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        done = subprocess.run(["promtool", *words], cwd=FOLDER, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
