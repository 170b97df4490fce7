"""Servers that are members of a domain of Active Directory: their settings, and what one asks of them."""

from __future__ import annotations

import json

from tests.support.processes.samba import DomainController
from tests.support.processes.servers import Server, command


def environment(controller: DomainController, name: str, **more: str) -> dict[str, str]:
    section = {
        "mode": "domain",
        "url": controller.url,
        "user": controller.administrator,
        "password_file": str(controller.password_file),
        "ca_file": str(controller.ca_file),
        "changes_interval": "1",
    } | more
    found = {f"MSMQ_FAST_DIRECTORY__{key.upper()}": value for key, value in section.items()}
    return {"MSMQ_FAST_SERVER__NAME": name, **found}


def domain(server: Server, verb: str, *flags: str) -> tuple[int, dict[str, object], str]:
    """Run a verb of `msmq-fast domain`: exit code, what it shows, and its complaint."""
    done = command(
        "domain", verb, "--data", str(server.data), "--json", *flags, environment=server.environment
    )
    shown = json.loads(done.stdout) if done.stdout else {}
    return done.returncode, shown, done.stderr.decode()


def public(server: Server, name: str, *flags: str) -> str:
    """Create a public queue; returns its GUID."""
    server.ok("queue", "create", name, *flags)
    return str(server.ok("queue", "show", name)[0]["guid"])


def known(server: Server, guid: str) -> bool:
    return any(one["Identifier"] == guid for one in server.ok("directory", "list", "Queue"))
