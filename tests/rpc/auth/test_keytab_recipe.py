"""The commands of docs/how-to/remote-read.md that make a keytab in an MIT realm, run as they stand there."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.processes.kdc import serving

DOCUMENT = Path(__file__).parents[3] / "docs" / "how-to" / "remote-read.md"
KEYTAB, HOST = "/etc/msmq-fast.keytab", "orders01.example.net"


@pytest.mark.needs("krb5kdc", "kdb5_util", "kadmin.local", "klist")
def test_the_keytab_has_the_key_of_the_service(tmp_path: Path) -> None:
    commands = [line.partition("#")[0] for line in DOCUMENT.read_text().splitlines() if line[:7] == "kadmin "]
    assert commands
    keytab = tmp_path / "msmq-fast.keytab"
    with serving(tmp_path, "aes256-cts-hmac-sha1-96") as kdc:
        environment = {**os.environ, **kdc.environment}
        for line in commands:  # kadmin.local is kadmin without a password and a server
            command = line.replace("kadmin ", "kadmin.local ", 1).replace(KEYTAB, str(keytab))
            subprocess.run(["/bin/sh", "-c", command], env=environment, check=True, capture_output=True)
        shown = subprocess.run(
            ["klist", "-k", str(keytab)], env=environment, check=True, capture_output=True, text=True
        )
    assert f"host/{HOST}@" in shown.stdout
