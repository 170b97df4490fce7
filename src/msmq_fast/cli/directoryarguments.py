"""The grammar of the verb `directory`."""

from __future__ import annotations

import argparse
from typing import Any

from msmq_fast.directory.objecttypes import BY_TITLE, ObjectType

__all__ = ["add_directory"]


def add_directory(
    verbs: argparse._SubParsersAction[Any], client: argparse.ArgumentParser, parser: type
) -> None:
    """The grammar of the verb."""
    directory = verbs.add_parser("directory", help="public queues, computers, sites, links, users")
    actions = directory.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=parser)
    listing = actions.add_parser("list", parents=[client], help="objects, of one type or all")
    listing.add_argument("type", nargs="?", type=_object_type, metavar="TYPE")
    for action, what in (("show", "one object"), ("delete", "delete an object")):
        one = actions.add_parser(action, parents=[client], help=what)
        one.add_argument("type", type=_object_type, metavar="TYPE")
        one.add_argument("name", metavar="NAME|GUID")
    create = actions.add_parser("create", parents=[client], help="create an object")
    create.add_argument("type", type=_object_type, metavar="TYPE")
    create.add_argument("values", nargs="+", metavar="ATTRIBUTE=VALUE")
    change = actions.add_parser("set", parents=[client], help="change attributes of an object")
    change.add_argument("type", type=_object_type, metavar="TYPE")
    change.add_argument("name", metavar="NAME|GUID")
    change.add_argument("values", nargs="+", metavar="ATTRIBUTE=VALUE")
    out = actions.add_parser("export", parents=[client], help="write objects as JSON")
    out.add_argument("file", nargs="?", default="-", metavar="FILE")
    into = actions.add_parser("import", parents=[client], help="create or correct objects from such a file")
    into.add_argument("file", metavar="FILE")
    into.add_argument("--dry-run", action="store_true", help="only say what would be done")
    for verb in (out, into):
        verb.add_argument(
            "--type",
            dest="types",
            action="append",
            type=_object_type,
            metavar="TYPE",
            help="only these types",
        )


def _object_type(text: str) -> ObjectType:
    kind = BY_TITLE.get(text.casefold())
    if kind is None:
        names = ", ".join(kind.title for kind in ObjectType)
        raise argparse.ArgumentTypeError(f"{text!r} is none of {names}")
    return kind
