"""The Compose file: its shape, its services, what a linter says of it, and what Prometheus collects."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.servers import Server, command, data_directory, until

FOLDER = Path(__file__).parents[2] / "contrib" / "compose"
FILE = FOLDER / "compose.yaml"
pytestmark = [
    pytest.mark.long(seconds=10),
    pytest.mark.needs(modules=("compose_lint", "compose_spec", "yaml")),
]


def services() -> dict[str, dict[str, Any]]:
    import yaml

    found: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())["services"]
    return found


def test_the_file_follows_the_specification() -> None:
    import yaml
    from compose_spec import ComposeSpecification

    parsed = ComposeSpecification.model_validate(yaml.safe_load(FILE.read_text()))
    assert set(parsed.services) == {"msmq-fast", "prometheus", "grafana"}


def test_the_linter_finds_nothing_grave() -> None:
    command = [str(Path(sys.executable).with_name("compose-lint")), "check", str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def test_each_service_runs_without_privileges() -> None:
    for service in services().values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["user"].split(":")[0] != "0"


def test_only_message_ports_leave_the_computer() -> None:
    published = [port for service in services().values() for port in service.get("ports", [])]
    assert published == ["1801:1801", "3527:3527/udp", "127.0.0.1:3000:3000"]


def test_programs_of_other_images_wait_for_the_server() -> None:
    found = services()
    assert found["prometheus"]["depends_on"] == {"msmq-fast": {"condition": "service_healthy"}}
    assert "HEALTHCHECK" in (FOLDER.parents[1] / "Dockerfile").read_text()
    assert found["msmq-fast"]["env_file"] == [{"path": "backup.env", "required": False}]


def test_grafana_finds_its_data_source_and_the_dashboard() -> None:
    import yaml

    (source,) = yaml.safe_load((FOLDER / "provisioning/datasources/prometheus.yaml").read_text())[
        "datasources"
    ]
    assert source["type"] == "prometheus"
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((FOLDER / "provisioning/dashboards/msmq-fast.yaml").read_text())["providers"]
    mounted = [mount.split(":") for mount in services()["grafana"]["volumes"] if mount.startswith("../")]
    ((dashboard, target, _),) = mounted
    assert str(Path(target).parent) == provider["options"]["path"]
    content = json.loads((FOLDER / dashboard).read_text())
    kinds = {target["datasource"]["type"] for panel in content["panels"] for target in panel["targets"]}
    assert kinds <= {"prometheus"}
    (variable,) = [each for each in content["templating"]["list"] if each["type"] == "datasource"]
    assert variable["query"] == source["type"]


@pytest.mark.needs("prometheus")
def test_prometheus_collects_from_a_server_and_loads_the_rules(tmp_path: Path) -> None:
    """With the files of the Compose file; the address of a process takes the place of the container."""
    rules = FOLDER.parent / "helm" / "msmq-fast" / "files" / "rules.yaml"
    (tmp_path / "rules.yaml").write_bytes(rules.read_bytes())
    settings = (FOLDER / "prometheus.yml").read_text()
    environment = {
        key: value
        for key, value in services()["msmq-fast"]["environment"].items()
        if key != "MSMQ_FAST_LISTEN__ADMIN__HOST"
    }
    with data_directory() as data, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
        probe.close()
        server = Server(data, environment=environment).start()
        target = f"{server.host}:{server.port('admin')}"
        assert settings.count("msmq-fast:1802") == 1
        (tmp_path / "prometheus.yml").write_text(
            settings.replace("msmq-fast:1802", target).replace("scrape_interval: 15s", "scrape_interval: 1s")
        )
        program = ["prometheus", f"--config.file={tmp_path / 'prometheus.yml'}"]
        program += [f"--storage.tsdb.path={tmp_path / 'tsdb'}", f"--web.listen-address={address}"]
        with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as prometheus:
            try:

                def ask(path: str) -> Any:
                    try:
                        with urllib.request.urlopen(f"http://{address}/api/v1/{path}", timeout=5) as answer:
                            return json.load(answer)["data"]
                    except OSError:
                        return None

                query = "query?query=msmq_fast_ready"
                found = until(lambda: (ask(query) or {}).get("result"), what="a sample")
                assert [series["value"][1] for series in found] == ["1"]
                (scraped,) = ask("targets")["activeTargets"]
                assert (scraped["health"], scraped["labels"]["job"]) == ("up", "msmq-fast")
                loaded = [rule["name"] for group in ask("rules")["groups"] for rule in group["rules"]]
                assert loaded.count("MsmqFastSnapshotFailed") == 1
                assert len(loaded) == rules.read_text().count("- alert:")
            finally:
                prometheus.kill()
                server.kill()


def test_the_examples_of_the_guide_fit_to_the_file() -> None:
    import yaml

    page = (FOLDER.parents[1] / "docs" / "how-to" / "compose.md").read_text(encoding="utf-8")
    (override,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (variables,) = re.findall(r"^```ini\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    changed = yaml.safe_load(override)["services"]["msmq-fast"]
    assert changed.keys() <= services()["msmq-fast"].keys()
    stored = dict(line.split("=", 1) for line in variables.splitlines())
    ours = {key: value for key, value in stored.items() if key.startswith("MSMQ_FAST_")}
    done = command("config", "check", environment=changed["environment"] | ours)
    assert done.returncode == 0, done


def test_each_mounted_file_exists() -> None:
    mounts = [mount for service in services().values() for mount in service["volumes"]]
    files = [mount.split(":")[0] for mount in mounts if mount.startswith(".")]
    assert files
    for name in files:
        assert (FOLDER / name).exists(), name


@pytest.mark.needs("promtool")
def test_prometheus_understands_its_configuration_and_the_rules() -> None:
    rules = FOLDER.parent / "helm" / "msmq-fast" / "files" / "rules.yaml"
    for words in (("config", "--syntax-only", str(FOLDER / "prometheus.yml")), ("rules", str(rules))):
        done = subprocess.run(["promtool", "check", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
