"""Samba's black-box tests of DCE/RPC, derived from what Windows does, against our runtime."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.rpc.interop.samba_run import PYTHON, SUITE

_EXPECTED = Path(__file__).with_name("samba_expected.toml")
_PASS_MARK = 0.95


def failures(said: str) -> set[str]:
    """The tests that unittest names as failed or broken."""
    return set(re.findall(r"^(?:ERROR|FAIL): (test_\w+) ", said, re.MULTILINE))


@pytest.mark.long(seconds=70)
@pytest.mark.timeout(900)
@pytest.mark.needs(
    PYTHON, "unshare", "krb5kdc", "kadmin.local", modules=["gssapi"], rights=["network namespace"]
)
@pytest.mark.rule("RP-01", "RP-02", "RP-03", "RP-04", "RP-05", "RP-09", "RP-10", "RP-13", "RP-14", "RP-17")
@pytest.mark.rule(
    "RP-18", "RP-19", "RP-20", "RP-21", "RP-22", "RP-25", "RP-26", "RP-27", "RP-30", "RP-31", "RP-34"
)
def test_samba_raw_protocol(tmp_path: Path) -> None:
    if subprocess.run([PYTHON, "-c", f"import {SUITE}"], check=False, capture_output=True).returncode:
        hint = "docs/project/development.md lists the packages"
        pytest.fail(f"not installed: python3-samba ({hint})", pytrace=False)
    done = subprocess.run(
        [
            *("unshare", "--net", "--map-root-user"),
            *(sys.executable, "-m", "tests.rpc.interop.samba_run", str(tmp_path)),
        ],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=800,
        check=False,
    )
    said = done.stdout + done.stderr
    ran = re.search(r"^Ran (\d+) tests", said, re.MULTILINE)
    assert ran is not None, said[-3000:]
    listed = tomllib.loads(_EXPECTED.read_text())["expected"]
    expected = {test for entry in listed for test in entry["tests"]}
    reachable = int(ran[1]) - sum(len(entry["tests"]) for entry in listed if not entry["reachable"])
    failed = failures(said)
    assert failed - expected == set()
    assert expected - failed == set(), "these pass: take them off the list"
    missing = sum(len(entry["tests"]) for entry in listed if entry["reachable"])
    assert 1 - missing / reachable >= _PASS_MARK
