"""Samba's raw tests of DCE/RPC against our server, in a network of their own: the tests want port 135.

    unshare --net --map-root-user python -m tests.rpc.interop.samba_run FOLDER [TEST…]

Ends with the exit code of unittest, or NOT_ALLOWED where there is no right to such a network.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.processes.isolated import NOT_ALLOWED, bring_up_loopback
from tests.support.processes.kdc import REALM, Kdc, serving

PYTHON = "/usr/bin/python3"  # the one that Debian's python3-samba is for
SUITE = "samba.tests.dcerpc.raw_protocol"
_USER = "alice"  # of the key distribution centre, and of our server, with the same password
_HOST = "queues.example.test"  # Samba's Kerberos talks to no "localhost"
_SECURITY_CONTEXTS = 2048


def main(folder: str, *tests: str) -> int:
    """Run the tests, or all of them."""
    try:
        bring_up_loopback()
    except OSError as problem:
        print(problem)
        return NOT_ALLOWED
    with serving(Path(folder), "aes256-cts-hmac-sha1-96") as kdc:
        return _run(kdc, *tests)


def _run(kdc: Kdc, *tests: str) -> int:
    """With our server at the centre's service."""
    kdc.admin(f"addprinc -randkey host/{_HOST}")
    kdc.service_key(kdc.keytab, f"host/{_HOST}")
    environment = {
        **os.environ,
        **kdc.environment,
        "SERVER": "127.0.0.1",
        "TARGET_HOSTNAME": _HOST,
        "DOMAIN": "EXAMPLE",
        "REALM": REALM,
        "USERNAME": _USER,
        "PASSWORD": _USER,
        "SMB_CONF_PATH": os.devnull,
        "IGNORE_RANDOM_PAD": "1",
        "MAX_NUM_AUTH": str(_SECURITY_CONTEXTS),
        "SERVER_KEYTAB": str(kdc.keytab),
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.rpc.interop.samba_server"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=(kdc.folder / "server.log").open("wb"),
    )
    try:
        assert server.stdout is not None
        if server.stdout.readline() != b"ready\n":
            return NOT_ALLOWED
        command = [PYTHON, "-m", "unittest", "-v", *(tests or (SUITE,))]
        return subprocess.run(command, env=environment, cwd=kdc.folder, check=False).returncode
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
