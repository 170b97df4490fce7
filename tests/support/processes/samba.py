"""An Active Directory domain on this computer: Samba's domain controller at an address of its own. It needs
root, because clients expect LDAP at its port.
"""

from __future__ import annotations

import base64
import contextlib
import glob
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

PASSWORD = "Passw0rd!"  # noqa: S105 - of every account of the test domain
_SECRET = base64.b64encode(f'"{PASSWORD}"'.encode("utf-16-le")).decode()  # as Active Directory takes it
DOMAIN = "DC=corp,DC=example"
CONFIGURATION = f"CN=Configuration,{DOMAIN}"
SITE = f"CN=Default-First-Site-Name,CN=Sites,{CONFIGURATION}"
PROGRAMS = ("samba", "samba-tool", "ldapsearch", "ldbmodify", "ldbsearch", "openssl")
SECOND = "127.0.20.11"
"""The address of `DomainController.second`."""
_LOG_ON = ("-U", f"CORP\\Administrator%{PASSWORD}")
_FAKETIME = "/usr/lib/*/faketime/libfaketime.so.1"


class DomainController:
    """The domain CORP.EXAMPLE. `administrator` and `user(…)` are accounts, all with PASSWORD."""

    administrator = "Administrator@CORP.EXAMPLE"

    def __init__(self, folder: Path, address: str, run: str = "run", services: str = "") -> None:
        self.folder = folder
        self.address = address
        self.url = f"ldap://{address}"
        self.process: subprocess.Popen[bytes] | None = None
        self._run = folder / run
        self._services = services or "ldap,cldap,kdc,rpc"

    def second(self) -> DomainController:
        """Another process that serves the same domain from the same files, at the address SECOND. It can be
        killed and stopped for itself; what is written in one is in the other at once.
        """
        return DomainController(self.folder, SECOND, "run2")

    def replica(self, folder: Path) -> DomainController:
        """Another domain controller of the domain at the address SECOND, with files of its own. Changes come
        from one to the other by `replicate` only.
        """
        other = DomainController(folder, SECOND)
        folder.mkdir()
        other.password_file.write_text(PASSWORD)
        for name in ("key.pem", "cert.pem"):
            shutil.copy(self.folder / name, folder / name)
        given = [f"--option={name}={value}" for name, value in other._options.items()]
        self._tool(
            "domain", "join", "CORP.EXAMPLE", "DC", f"--server={self.address}", *_LOG_ON, "-W", "CORP",
            "--option=workgroup=CORP", "--realm=CORP.EXAMPLE", "--option=realm=CORP.EXAMPLE",
            "--option=netbios name=dc2", "--dns-backend=NONE", f"--targetdir={folder}", *given,
        )  # fmt: skip
        return other

    def replicate(self, source: DomainController) -> None:
        """Get the changes of another domain controller."""
        for context in (DOMAIN, CONFIGURATION):
            self._tool(
                "drs", "replicate", "--local", self.address, source.address, context, *_LOG_ON,
                "-s", str(self._config),
            )  # fmt: skip

    @property
    def _options(self) -> dict[str, str]:
        place = self.folder
        return {
            "interfaces": f"{self.address}/24",
            "bind interfaces only": "yes",
            "ldb:nosync": "yes",
            "vfs objects": "dfs_samba4,acl_xattr,xattr_tdb",
            "xattr_tdb:file": f"{place}/xattr.tdb",
            "posix:eadb": f"{place}/private/eadb.tdb",
        }

    @property
    def ca_file(self) -> Path:
        return self.folder / "cert.pem"

    @property
    def password_file(self) -> Path:
        return self.folder / "password"

    def provision(self) -> None:
        place = self.folder
        place.mkdir(exist_ok=True)
        self.password_file.write_text(PASSWORD)
        given = [f"--option={name}={value}" for name, value in self._options.items()]
        self._tool(
            "domain", "provision", "--realm=CORP.EXAMPLE", "--domain=CORP", "--server-role=dc",
            "--dns-backend=NONE", "--host-name=dc1", f"--host-ip={self.address}", f"--adminpass={PASSWORD}",
            f"--targetdir={place}", *given,
        )  # fmt: skip
        neighbours = [f"{self.address.rpartition('.')[0]}.{number}" for number in (11, 13)]
        addresses = ",".join(f"IP:{one}" for one in (self.address, SECOND, *neighbours))
        names = f"subjectAltName={addresses},DNS:dc1.corp.example"
        request = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=dc1.corp.example"
        files = ["-keyout", str(place / "key.pem"), "-out", str(self.ca_file)]
        subprocess.run(
            ["openssl", *request.split(), "-addext", names, *files], check=True, capture_output=True
        )
        (place / "key.pem").chmod(0o600)

    def start(self) -> None:
        self._run.mkdir(exist_ok=True)
        self.clock(0)
        options = {
            "interfaces": f"{self.address}/24",
            "server services": self._services,
            "pid directory": str(self._run),
            "tls keyfile": f"{self.folder}/key.pem",
            "tls certfile": str(self.ca_file),
            "tls cafile": "",
        }
        given = [f"--option={name}={value}" for name, value in options.items()]
        environment = dict(os.environ)
        for library in glob.glob(_FAKETIME):
            environment |= {
                "LD_PRELOAD": library,
                "FAKETIME_TIMESTAMP_FILE": str(self._run / "clock"),
                "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["samba", "-i", "--no-process-group", "-M", "single", "-s", str(self._config), *given,
                 "--debug-stdout", "-d1"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
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

    def clock(self, seconds: int) -> None:
        """Move the clock of the running controller. Needs the package faketime."""
        (self._run / "clock").write_text(f"{seconds:+d}s")

    def keytab(self, account: str) -> tuple[Path, Path]:
        """A keytab of an account, and a krb5.conf with which it can be used."""
        keytab, config = self.folder / f"{account}.keytab", self.folder / "krb5.conf"
        if not keytab.exists():
            self._tool(
                "domain", "exportkeytab", str(keytab), f"--principal={account}", "-s", str(self._config)
            )
        if not config.exists():
            for address in (self.address, SECOND):
                self._tool(
                    "spn", "add", f"ldap/{address}", "DC1$",
                    "-H", f"{self.folder}/private/sam.ldb", "-s", str(self._config),
                )  # fmt: skip
            config.write_text(
                "[libdefaults]\ndefault_realm = CORP.EXAMPLE\ndns_lookup_kdc = false\nrdns = false\n"
                "dns_canonicalize_hostname = false\n"
                f"[realms]\nCORP.EXAMPLE = {{\n kdc = {self.address}\n kdc = {SECOND}\n}}\n"
            )
        return keytab, config

    @property
    def _config(self) -> Path:
        return self.folder / "etc" / "smb.conf"

    def _tool(self, *arguments: str) -> str:
        done = subprocess.run(["samba-tool", *arguments], check=True, capture_output=True, timeout=120)
        return done.stdout.decode()

    def ldif(self, text: str, timeout: float = 60) -> None:
        """Change the domain behind the back of every client."""
        subprocess.run(
            ["ldbmodify", "-H", str(self.folder / "private" / "sam.ldb")],
            input=text.encode(),
            check=True,
            capture_output=True,
            timeout=timeout,
        )

    def guid(self, path: str) -> UUID:
        """The GUID of an object, read from the files of the domain."""
        database = str(self.folder / "private" / "sam.ldb")
        found = subprocess.run(
            ["ldbsearch", "-H", database, "-b", path, "-s", "base", "objectGUID"],
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        (line,) = (line for line in found.stdout.decode().splitlines() if line.startswith("objectGUID: "))
        return UUID(line.removeprefix("objectGUID: "))

    def computer(self, name: str) -> str:
        """Make a computer account; returns its distinguished name."""
        path = f"CN={name},CN=Computers,{DOMAIN}"
        self.ldif(
            f"dn: {path}\nchangetype: add\nobjectClass: computer\nsAMAccountName: {name}$\n"
            f"userAccountControl: 4096\ndNSHostName: {name.lower()}.corp.example\n"
            f"msDS-SupportedEncryptionTypes: 24\nunicodePwd:: {_SECRET}\n"
        )
        return path

    def user(self, name: str) -> str:
        """Make a user account; returns its distinguished name."""
        path = f"CN={name},CN=Users,{DOMAIN}"
        self.ldif(
            f"dn: {path}\nchangetype: add\nobjectClass: user\nsAMAccountName: {name}\n"
            f"userPrincipalName: {name}@CORP.EXAMPLE\nuserAccountControl: 512\nunicodePwd:: {_SECRET}\n"
        )
        return path

    def group(self, name: str, *members: str) -> str:
        """Make a group; returns its distinguished name. `members` are distinguished names."""
        path = f"CN={name},CN=Users,{DOMAIN}"
        listed = "".join(f"member: {member}\n" for member in members)
        self.ldif(f"dn: {path}\nchangetype: add\nobjectClass: group\nsAMAccountName: {name}\n{listed}")
        return path

    def service(self, path: str, *names: str) -> None:
        """Give the computer account `path` names of services, for which there are tickets then."""
        listed = "".join(f"servicePrincipalName: {name}\n" for name in names)
        self.ldif(f"dn: {path}\nchangetype: modify\nadd: servicePrincipalName\n{listed}")

    def grant(self, path: str, entries: str) -> None:
        """Add entries, as text (SDDL), to the access list of an object."""
        self._tool(
            "dsacl", "set", f"--objectdn={path}", f"--sddl={entries}",
            "-H", f"{self.folder}/private/sam.ldb", "-s", str(self._config),
        )  # fmt: skip

    def access(self, path: str) -> str:
        """The access list of an object, as text (SDDL)."""
        return self._tool(
            "dsacl", "get", f"--objectdn={path}",
            "-H", f"{self.folder}/private/sam.ldb", "-s", str(self._config),
        )  # fmt: skip

    def keys(self, *principals: str) -> Path:
        """A keytab with the keys of all these principals."""
        path = self.folder / f"{principals[0].translate(str.maketrans('/$', '--'))}.keytab"
        for principal in principals:
            self._tool(
                "domain", "exportkeytab", str(path), f"--principal={principal}", "-s", str(self._config)
            )
        return path

    def search(
        self, condition: str, *attributes: str, base: str = DOMAIN, timeout: float = 60
    ) -> list[dict[str, list[bytes]]]:
        """What another program reads: the attributes of each entry, with their values."""
        found = subprocess.run(
            ["ldapsearch", "-LLL", "-o", "ldif-wrap=no", "-x", "-ZZ", "-H", self.url, "-b", base,
             "-D", self.administrator, "-w", PASSWORD, "-E", "pr=1000/noprompt", condition, *attributes],
            env={**os.environ, "LDAPTLS_CACERT": str(self.ca_file)},
            check=True, capture_output=True, timeout=timeout,
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
