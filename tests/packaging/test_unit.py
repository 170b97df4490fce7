"""The systemd unit: what it takes away from the server, and that the server works without it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from msmq_fast.server.runtime.stalls import LONGEST
from tests.support.processes import forking
from tests.support.processes.servers import Server, data_directory
from tools.deb import unit

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "contrib" / "msmq-fast.service"
PAGE = ROOT / "docs" / "how-to" / "operations.md"
WITHOUT_WRITABLE_CODE = """
import ctypes, os, sys
PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
if ctypes.CDLL(None).prctl(PR_SET_MDWE, *map(ctypes.c_ulong, (REFUSE_EXEC_GAIN, 0, 0, 0))):
    sys.exit("no PR_SET_MDWE")
os.execv(sys.argv[1], sys.argv[1:])
"""


def directives() -> dict[str, list[str]]:
    found = defaultdict(list)
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found[name].append(value)
    return found


def test_what_the_server_does_not_need_is_taken_away() -> None:
    found = directives()
    switched_on = {name for name, values in found.items() if values == ["yes"]}
    assert switched_on >= {
        "DynamicUser",
        "LockPersonality",
        "MemoryDenyWriteExecute",
        "NoNewPrivileges",
        "PrivateDevices",
        "PrivateTmp",
        "ProtectClock",
        "ProtectControlGroups",
        "ProtectHome",
        "ProtectHostname",
        "ProtectKernelLogs",
        "ProtectKernelModules",
        "ProtectKernelTunables",
        "RemoveIPC",
        "RestrictNamespaces",
        "RestrictRealtime",
        "RestrictSUIDSGID",
    }
    assert found["ProtectSystem"] == ["strict"]
    assert found["ProcSubset"] == ["pid"]
    assert found["LimitCORE"] == ["0"]
    assert found["UMask"] == ["0077"]
    assert found["CapabilityBoundingSet"] == ["CAP_NET_BIND_SERVICE"]
    assert found["SystemCallFilter"] == ["@system-service", "~@privileged"]
    assert int(found["TasksMax"][0]) > 0
    assert int(found["LimitNOFILE"][0]) >= 65_536


def test_the_page_shows_the_unit() -> None:
    (shown,) = re.findall(r"^```ini\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    head, _, rest = UNIT.read_text(encoding="utf-8").partition("\n")
    assert head.startswith("# systemd unit: copy to")  # what the page says above the block
    assert shown == rest


def test_the_server_is_started_as_it_behaves() -> None:
    """It notifies systemd (tests/server/test_service_manager.py), and stays in the foreground."""
    found = directives()
    assert found["Type"] == ["notify"]
    assert found["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    # A stall of the loop is a warning long before it is a reason to end the process.
    assert int(found["WatchdogSec"][0]) >= 10 * LONGEST


def test_the_debian_package_changes_program_and_user_only() -> None:
    ours, packaged = UNIT.read_text(encoding="utf-8").splitlines()[1:], unit().splitlines()
    assert [line for line in packaged if line not in ours] == [
        "ExecStart=/usr/bin/msmq-fast serve --config /etc/msmq-fast/msmq.toml",
        "EnvironmentFile=-/etc/default/msmq-fast",
        "User=msmq-fast",
        "Group=msmq-fast",
    ]
    missing = [line for line in ours if line not in packaged]
    assert [line.partition("=")[0] for line in missing] == ["ExecStart", "DynamicUser"]


UNITS = pytest.mark.parametrize("text", [UNIT.read_text(encoding="utf-8"), unit()], ids=["unit", "package"])


def analyzed(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What `systemd-analyze` says of the unit."""
    there = folder / UNIT.name
    program = r"(?m)^ExecStart=\S+"  # systemd looks whether it can be executed
    there.write_text(re.sub(program, f"ExecStart={sys.executable}", text))
    command = ["systemd-analyze", *arguments, str(there)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.long(seconds=2)
@pytest.mark.needs("systemd-analyze")
@UNITS
def test_systemd_understands_the_unit(tmp_path: Path, text: str) -> None:
    done = analyzed(tmp_path, text, "verify")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.long(seconds=2)
@pytest.mark.needs("systemd-analyze")
@UNITS
def test_systemd_finds_the_unit_little_exposed(tmp_path: Path, text: str) -> None:
    """2.0 of 10 at most."""
    done = analyzed(tmp_path, text, "security", "--offline=true", "--threshold=20", "--no-pager")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Overall exposure level for msmq-fast.service: 1." in done.stdout


@pytest.mark.needs(rights=["memory deny write execute"])
def test_the_server_works_where_memory_is_either_writable_or_executable() -> None:
    """MemoryDenyWriteExecute, by the kernel: a library that makes code at run time would fail."""
    with data_directory() as data:
        server = Server(data, "--http-port", "0", host="127.0.42.60")
        server.program = (sys.executable, "-c", WITHOUT_WRITABLE_CODE, *forking.PROGRAM)
        try:
            server.start()
            server.ok("queue", "create", "orders")
            server.ok("certificate", "create")
            server.ok("send", "orders", "--body", "x", "--recoverable")
            assert len(server.messages("orders")) == 1
            assert server.stop() == 0
        finally:
            server.kill()
