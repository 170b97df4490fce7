"""A key distribution centre of MIT Kerberos in a directory of its own, on a high port, without root."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REALM = "EXAMPLE.TEST"
SERVICE = "host/localhost"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Kdc:
    """Its users have their names as passwords; `keytab` has the keys of the service."""

    folder: Path
    environment: dict[str, str]

    @property
    def keytab(self) -> Path:
        return self.folder / "service.keytab"

    def run(self, *command: str) -> None:
        subprocess.run(
            command, env={**os.environ, **self.environment}, check=True, capture_output=True, timeout=60
        )

    def admin(self, query: str) -> None:
        self.run("kadmin.local", "-r", REALM, "-q", query)

    def service_key(self, keytab: Path, principal: str = SERVICE, options: str = "") -> None:
        self.admin(f"ktadd -k {keytab} {options} {principal}")


@contextlib.contextmanager
def serving(folder: Path, ciphers: str) -> Iterator[Kdc]:
    """A realm with alice and bob, and the centre that serves it, which ends with the block."""
    kdc, process = _prepare(folder, ciphers)
    try:
        yield kdc
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def _prepare(folder: Path, ciphers: str) -> tuple[Kdc, subprocess.Popen[bytes]]:
    port = _free_port()
    config = folder / "krb5.conf"
    config.write_text(
        f"""[libdefaults]
default_realm = {REALM}
dns_lookup_kdc = false
dns_lookup_realm = false
rdns = false
dns_canonicalize_hostname = false
udp_preference_limit = 1
permitted_enctypes = {ciphers}
allow_weak_crypto = true
allow_rc4 = true
[realms]
{REALM} = {{
  kdc = 127.0.0.1:{port}
}}
[domain_realm]
localhost = {REALM}
[logging]
kdc = STDERR
"""
    )
    profile = folder / "kdc.conf"
    profile.write_text(
        f"""[kdcdefaults]
kdc_listen = 127.0.0.1:{port}
kdc_tcp_listen = 127.0.0.1:{port}
[realms]
{REALM} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/acl
  master_key_type = {ciphers.split()[0]}
  supported_enctypes = {" ".join(f"{cipher}:normal" for cipher in ciphers.split())}
}}
"""
    )
    (folder / "acl").touch()
    environment = {
        "KRB5_CONFIG": str(config),
        "KRB5_KDC_PROFILE": str(profile),
        "KRB5CCNAME": f"FILE:{folder}/nobody",
        "KRB5_CLIENT_KTNAME": f"FILE:{folder}/none",
        "KRB5_KTNAME": f"FILE:{folder}/none",
    }
    kdc = Kdc(folder, environment)
    kdc.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
    for name in ("alice", "bob"):
        kdc.admin(f"addprinc -pw {name} {name}")
    kdc.admin(f"addprinc -randkey {SERVICE}")
    kdc.service_key(kdc.keytab)
    process = subprocess.Popen(
        ["krb5kdc", "-n", "-r", REALM],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if b"commencing operation" in line:
            return kdc, process
    raise AssertionError("krb5kdc did not start")
