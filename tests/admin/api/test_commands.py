"""Every command of msmq-fast has its call in the management API, or a reason why it has none."""

from __future__ import annotations

import pytest

from msmq_fast.admin.api.operations import OPERATIONS
from msmq_fast.cli.tree import ROOT
from msmq_fast.terminal.commands import Command, walk

pytestmark = pytest.mark.smoke

PROGRAM = "msmq-fast"
FILES = "works on files of this machine, and needs no server"
DOMAIN = "logs on at the domain controller itself; the server is stopped while it joins"
TERMINAL = "concerns the terminal"
PROBE = "asks whether a server answers; the API has /livez and /readyz beside it"
STORAGE = "works on object storage with the credentials of its caller, and needs no server"
ACCOUNTS = "the users file belongs to the machine: docs/how-to/management-api.md says why"
PATCH = "`access.edit` does it, with the verb as its action"

WITHOUT = {
    "serve": "starts the server",
    "status": "`server.show`, `server.stats` and `queues.list` together",
    "health": PROBE,
    "ping": PROBE,
    "config check": "reads the file of this machine; `config.check` takes a text",
    "config schema": FILES,
    "security review": FILES,
    "receive": "removes messages for a program; operators browse, move and purge",
    "export": "a stream of any length; the bulk API has it",
    "import": "a stream of any length; the application protocol has it",
    "queue import": "reads definitions of Windows from a file, and calls `queues.create`",
    "directory export": "`directory.list`, one type after the other",
    "queue find": "`directory.list` of the type Queue with conditions",
    "acl deny": PATCH,
    "acl revoke": PATCH,
    "acl chown": PATCH,
    "acl set": PATCH,
    "user add": ACCOUNTS,
    "user list": "reads the file; `users.list` answers from the running server",
    "user remove": ACCOUNTS,
    "user passwd": ACCOUNTS,
    "user token": ACCOUNTS,
    "audit export": "writes a file from the pages of `audit.list`",
    "backup restore": FILES,
    "backup push": FILES,
    "backup pull": FILES,
    "backup list": STORAGE,
    "backup prune": STORAGE,
    "store compact": FILES,
    "domain status": DOMAIN,
    "domain join": DOMAIN,
    "domain leave": DOMAIN,
    "domain explain": DOMAIN,
    "completion": TERMINAL,
    "help": TERMINAL,
}
"""Commands without a call of their own, each with the reason."""


def commands() -> set[str]:
    """The words of every visible command; those of the lake belong to a program of its own."""
    found = (words for node, words in walk(ROOT, PROGRAM) if isinstance(node, Command))
    return {words.removeprefix(f"{PROGRAM} ") for words in found if not words.startswith(f"{PROGRAM} lake ")}


def test_every_command_has_its_call_or_a_reason() -> None:
    called = {operation.verb for operation in OPERATIONS if operation.verb}
    assert called <= commands()
    assert commands() - called == set(WITHOUT)
