"""The grammar of the verbs about access: `acl` and `user`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

__all__ = ["add_acl", "add_user"]

Verbs = Any  # argparse's own type for subparsers is private


def add_acl(verbs: Verbs, client: argparse.ArgumentParser) -> None:
    """`acl show|grant|deny|revoke|own|set|explain`."""
    parser = type(client)
    acl = verbs.add_parser("acl", help="who may do what with a queue")
    actions = acl.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=parser)

    def action(name: str, about: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = actions.add_parser(name, parents=[client], help=about)
        added.add_argument("name", metavar="QUEUE", nargs="?")
        added.add_argument("--machine", action="store_true", help="the queue manager itself")
        return added

    def who(added: argparse.ArgumentParser, *, right: bool) -> None:
        added.add_argument(
            "--user",
            required=True,
            metavar="NAME",
            help="user or group of the users file, everyone, anonymous, administrators, uid:N, or a SID",
        )
        added.add_argument(
            "--right",
            action="append",
            required=right,
            metavar="RIGHT",
            help="send, receive, peek, journal, get-properties, …, all, or an MQSEC_ name; may be repeated",
        )

    action("show", "the owner and the entries")
    who(action("grant", "give rights"), right=True)
    who(action("deny", "refuse rights, whatever other entries grant"), right=True)
    who(action("revoke", "neither give nor refuse; without --right: no right"), right=False)
    who(action("explain", "which entry decides"), right=True)
    own = action("own", "make somebody the owner")
    own.add_argument("--user", required=True, metavar="NAME")
    action("set", "replace by a descriptor string").add_argument("--sddl", required=True, metavar="TEXT")


def add_user(
    verbs: Verbs, output: argparse.ArgumentParser, number: Callable[[int, int], Callable[[str], int]]
) -> None:
    """`user add|list|remove|passwd`."""
    user = verbs.add_parser("user", help="the users file")
    actions = user.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=type(output))

    def action(name: str, about: str, *, named: bool = True) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = actions.add_parser(name, parents=[output], help=about)
        added.add_argument("--data", metavar="DIR", help="data directory")
        added.add_argument("--config", metavar="FILE", help="TOML file; default: MSMQ_FAST_CONFIG")
        if named:
            added.add_argument("name", metavar="NAME")
        return added

    add = action("add", "add a user; the password comes from stdin")
    add.add_argument("--uid", type=number(0, 2**32 - 2), metavar="N", help="the Unix user who this is")
    add.add_argument("--group", action="append", default=[], metavar="NAME", help="may be repeated")
    add.add_argument("--sid", metavar="S-1-…", help="take over a SID; else a new one")
    add.add_argument("--no-password", action="store_true", help="known by uid or token only")
    action("list", "all users", named=False)
    action("remove", "remove a user")
    action("passwd", "set a password, from stdin")
