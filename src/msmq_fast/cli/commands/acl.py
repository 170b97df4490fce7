"""The verb `acl`: who may do what with a queue, or with the queue manager."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from msmq_fast.cli.session import converse, show, show_table
from msmq_fast.client.connection import Connection
from msmq_fast.protocol.exits import CommandError, Exit

__all__ = ["run_acl"]


def run_acl(arguments: argparse.Namespace) -> int:
    """`msmq-fast acl …`."""
    if arguments.machine == (arguments.name is not None):
        raise CommandError(Exit.USAGE, "give a QUEUE, or --machine for the queue manager itself")
    return converse(_acl, arguments)


async def _acl(connection: Connection, arguments: argparse.Namespace) -> int:
    name = arguments.name
    match arguments.action:
        case "show":
            _show_list(await connection.acl(name), as_json=arguments.json)
        case "explain":
            explained = await connection.explain_access(name, arguments.user, ",".join(arguments.right))
            _show_explanation(explained, as_json=arguments.json)
        case "set":
            _show_list(await connection.edit_acl(name, "set", arguments.sddl), as_json=arguments.json)
        case action:
            rights = ",".join(getattr(arguments, "right", None) or ())
            changed = await connection.edit_acl(name, action, arguments.user, rights)
            _show_list(changed, as_json=arguments.json)
    return Exit.OK


def _json(content: dict[str, Any]) -> None:
    plain = {key: value.hex() if isinstance(value, bytes) else value for key, value in content.items()}
    sys.stdout.write(json.dumps(plain) + "\n")


def _who(account: dict[str, str]) -> str:
    return f"{account['name']} ({account['sid']})" if account["name"] else account["sid"] or "nobody"


def _show_list(content: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        _json(content)
        return
    show({"owner": _who(content["owner"]), "sddl": content["sddl"]}, as_json=False)
    if content["entries"] is None:
        print("no list: everybody may do everything")
        return
    rows = [
        {
            "entry": entry["index"],
            "type": entry["type"],
            "who": _who(entry),
            "rights": ", ".join(right.removeprefix("MQSEC_").lower() for right in entry["rights"]),
        }
        for entry in content["entries"]
    ]
    show_table(rows, ("entry", "type", "who", "rights"), as_json=False)


def _show_explanation(content: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        _json(content)
        return
    entry = content["entry"]
    what = {"caller": content["caller"], "rights": ", ".join(content["rights"])}
    what["decision"] = "granted" if content["granted"] else "denied"
    what["because"] = content["reason"]
    if entry is not None:
        what["entry"] = f"{entry['index']}: {entry['type']} {_who(entry)} {entry['text']}"
    if content["missing"]:
        what["missing"] = ", ".join(content["missing"])
    what["member of"] = ", ".join(sid["name"] or sid["sid"] for sid in content["sids"])
    show(what, as_json=False)
