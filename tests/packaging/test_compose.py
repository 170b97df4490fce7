"""The Compose file: its shape, its services, and what a linter for security says of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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


def test_each_mounted_file_exists() -> None:
    mounts = [mount for service in services().values() for mount in service["volumes"]]
    files = [mount.split(":")[0] for mount in mounts if mount.startswith(".")]
    assert files
    for name in files:
        assert (FOLDER / name).exists(), name


@pytest.mark.needs("promtool")
def test_prometheus_understands_its_configuration_and_the_rules() -> None:
    rules = FOLDER.parent / "helm" / "msmq-fast" / "files" / "rules.yaml"
    for command in (("config", "--syntax-only", str(FOLDER / "prometheus.yml")), ("rules", str(rules))):
        done = subprocess.run(["promtool", "check", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
