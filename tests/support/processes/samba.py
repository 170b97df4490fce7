"""An Active Directory domain on this computer: Samba's domain controller at an address of its own. It needs
root, because clients expect LDAP at its port.
"""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

PASSWORD = "Passw0rd!"  # noqa: S105 - of every account of the test domain
DOMAIN = "DC=corp,DC=example"
CONFIGURATION = f"CN=Configuration,{DOMAIN}"
SITE = f"CN=Default-First-Site-Name,CN=Sites,{CONFIGURATION}"
PROGRAMS = ("samba", "samba-tool", "ldapsearch", "ldbmodify", "openssl")


class DomainController:
    """The domain CORP.EXAMPLE. `administrator` and `user(…)` are accounts, all with PASSWORD."""

    administrator = "Administrator@CORP.EXAMPLE"

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self.address = address
        self.url = f"ldap://{address}"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def ca_file(self) -> Path:
        return self.folder / "cert.pem"

    @property
    def password_file(self) -> Path:
        return self.folder / "password"

    def provision(self) -> None:
        place = self.folder
        place.mkdir(exist_ok=True)
        (place / "run").mkdir()
        self.password_file.write_text(PASSWORD)
        options = {
            "interfaces": f"{self.address}/24",
            "bind interfaces only": "yes",
            "ldb:nosync": "yes",
            "vfs objects": "dfs_samba4,acl_xattr,xattr_tdb",
            "xattr_tdb:file": f"{place}/xattr.tdb",
            "posix:eadb": f"{place}/private/eadb.tdb",
        }
        given = [f"--option={name}={value}" for name, value in options.items()]
        self._tool(
            "domain", "provision", "--realm=CORP.EXAMPLE", "--domain=CORP", "--server-role=dc",
            "--dns-backend=NONE", "--host-name=dc1", f"--host-ip={self.address}", f"--adminpass={PASSWORD}",
            f"--targetdir={place}", *given,
        )  # fmt: skip
        names = f"subjectAltName=IP:{self.address},DNS:dc1.corp.example"
        request = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=dc1.corp.example"
        files = ["-keyout", str(place / "key.pem"), "-out", str(self.ca_file)]
        subprocess.run(
            ["openssl", *request.split(), "-addext", names, *files], check=True, capture_output=True
        )
        (place / "key.pem").chmod(0o600)

    def start(self) -> None:
        options = {
            "server services": "ldap,cldap,kdc,rpc",
            "pid directory": f"{self.folder}/run",
            "tls keyfile": f"{self.folder}/key.pem",
            "tls certfile": str(self.ca_file),
            "tls cafile": "",
        }
        given = [f"--option={name}={value}" for name, value in options.items()]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["samba", "-i", "--no-process-group", "-M", "single", "-s", str(self._config), *given,
                 "--debug-stdout", "-d1"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + 30
        while subprocess.run(
            ["ldapsearch", "-x", "-H", self.url, "-s", "base", "-b", ""], capture_output=True
        ).returncode:
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.1)

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self, stopped: bool) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP if stopped else signal.SIGCONT)

    @property
    def _config(self) -> Path:
        return self.folder / "etc" / "smb.conf"

    def _tool(self, *arguments: str) -> None:
        subprocess.run(["samba-tool", *arguments], check=True, capture_output=True, timeout=120)

    def ldif(self, text: str) -> None:
        """Change the domain behind the back of every client."""
        subprocess.run(
            ["ldbmodify", "-H", str(self.folder / "private" / "sam.ldb")],
            input=text.encode(),
            check=True,
            capture_output=True,
            timeout=60,
        )

    def computer(self, name: str) -> str:
        """Make a computer account; returns its distinguished name."""
        path = f"CN={name},CN=Computers,{DOMAIN}"
        self.ldif(
            f"dn: {path}\nchangetype: add\nobjectClass: computer\nsAMAccountName: {name}$\n"
            f"userAccountControl: 4096\ndNSHostName: {name.lower()}.corp.example\n"
        )
        return path

    def user(self, name: str) -> str:
        """Make a user account; returns its distinguished name."""
        path = f"CN={name},CN=Users,{DOMAIN}"
        secret = base64.b64encode(f'"{PASSWORD}"'.encode("utf-16-le")).decode()
        self.ldif(
            f"dn: {path}\nchangetype: add\nobjectClass: user\nsAMAccountName: {name}\n"
            f"userPrincipalName: {name}@CORP.EXAMPLE\nuserAccountControl: 512\nunicodePwd:: {secret}\n"
        )
        return path

    def search(self, condition: str, *attributes: str, base: str = DOMAIN) -> list[dict[str, list[bytes]]]:
        """What another program reads: the attributes of each entry, with their values."""
        found = subprocess.run(
            ["ldapsearch", "-LLL", "-o", "ldif-wrap=no", "-x", "-ZZ", "-H", self.url, "-b", base,
             "-D", self.administrator, "-w", PASSWORD, "-E", "pr=1000/noprompt", condition, *attributes],
            env={**os.environ, "LDAPTLS_CACERT": str(self.ca_file)},
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        entries: list[dict[str, list[bytes]]] = []
        for block in found.stdout.split(b"\n\n"):
            entry: dict[str, list[bytes]] = {}
            for line in block.splitlines():
                name, colon, value = line.partition(b":")
                if not colon or line.startswith(b"#"):
                    continue
                data = base64.b64decode(value[1:]) if value.startswith(b":") else value.strip()
                entry.setdefault(name.decode(), []).append(data)
            if "dn" in entry:
                entries.append(entry)
        return entries


@contextlib.contextmanager
def serving(folder: Path, address: str) -> Iterator[DomainController]:
    """A new domain, whose controller ends with the block."""
    controller = DomainController(folder, address)
    controller.provision()
    controller.start()
    try:
        yield controller
    finally:
        controller.kill()
