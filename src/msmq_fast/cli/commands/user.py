"""`msmq-fast user`: edits the users file directly; a running server reloads it."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import getpass
import hashlib
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from msmq_fast.cli.endpoint import add_configuration, configured
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import sid
from msmq_fast.security.users import User, Users, UsersFileError
from msmq_fast.security.usersfile import load_users, save_users
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import add_output, show, show_table
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import number

__all__ = ["COMMAND"]

_COLUMNS = ("name", "sid", "uid", "groups", "password", "tokens")
_TOKEN_PREFIX = "msmq_"  # noqa: S105 - by it, scanners find tokens that were published by mistake
_TOKEN_BYTES = 32


def _add_file(parser: Parser) -> None:
    add_configuration(parser)
    add_output(parser)


def _add_name(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the user")
    _add_file(parser)


def _add_user(parser: Parser) -> None:
    parser.add_argument("--uid", type=number(0, 2**32 - 2), metavar="N", help="uid of the user's processes")
    parser.add_argument(
        "--group", action="append", default=[], metavar="NAME", help="group of the user; may be repeated"
    )
    parser.add_argument("--sid", metavar="S-1-…", help="SID of the user; default: a new one")
    parser.add_argument(
        "--no-password",
        action="store_true",
        help="do not set a password: the user authenticates by uid or token only",
    )
    _add_name(parser)


def _add_token(parser: Parser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--replace", action="store_true", help="revoke the earlier tokens of the user")
    group.add_argument("--revoke", action="store_true", help="revoke all tokens of the user, and make none")
    _add_name(parser)


def _list(arguments: argparse.Namespace) -> int:
    with _explained(path := configured(arguments).users_file):
        if not path.exists():
            print(f"msmq-fast user list: {path} does not exist; --data selects another", file=sys.stderr)
        show_table([_row(user) for user in _load(path).users.values()], _COLUMNS, arguments.form)
    return Exit.OK


def _add(arguments: argparse.Namespace) -> int:
    def add(users: Users) -> User:
        try:
            own = sid(arguments.sid) if arguments.sid else None
        except SecurityDataError as error:
            raise CommandError(Exit.USAGE, str(error)) from None
        password = None if arguments.no_password else _password()
        users.add(arguments.name, uid=arguments.uid, groups=arguments.group, own_sid=own)
        if password is not None:
            users.set_password(arguments.name, password, os.urandom)
        return _found(users, arguments.name)

    show(_row(_changed(arguments, add)), arguments.form)
    return Exit.OK


def _passwd(arguments: argparse.Namespace) -> int:
    def set_password(users: Users) -> User:
        _found(users, arguments.name)  # before a password is asked for
        users.set_password(arguments.name, _password(), os.urandom)
        return _found(users, arguments.name)

    show(_row(_changed(arguments, set_password)), arguments.form)
    return Exit.OK


def _token(arguments: argparse.Namespace) -> int:
    secret = _TOKEN_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)

    def change(users: Users) -> User:
        _found(users, arguments.name)
        if arguments.replace or arguments.revoke:
            users.revoke_tokens(arguments.name)
        if not arguments.revoke:
            users.add_token(arguments.name, hashlib.sha256(secret.encode()).digest())
        return _found(users, arguments.name)

    user = _changed(arguments, change)
    made = {} if arguments.revoke else {"token": secret}
    show({"name": user.name, "tokens": len(user.tokens)} | made, arguments.form)
    return Exit.OK


def _remove(arguments: argparse.Namespace) -> int:
    def remove(users: Users) -> User:
        _found(users, arguments.name)
        return users.remove(arguments.name)

    show({"removed": _changed(arguments, remove).name}, arguments.form)
    return Exit.OK


def _changed(arguments: argparse.Namespace, change: Callable[[Users], User]) -> User:
    """Change the users file with `change`. After the file is written, return the result of `change`."""
    path = configured(arguments).users_file
    if not path.parent.is_dir():
        raise CommandError(
            Exit.USAGE,
            f"{path.parent} does not exist: `msmq-fast serve` creates a data directory at its first start; "
            "--data or --config select another one",
        )
    with _explained(path), _locked(path):
        users = _load(path)
        user = change(users)
        save_users(path, users)
    return user


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """While the context is open, turn errors of the users file `path` into CommandError."""
    try:
        yield
    except UsersFileError as error:
        raise CommandError(Exit.USAGE, str(error)) from None
    except OSError as error:
        raise CommandError(Exit.FAILURE, f"{path}: {error.strerror or error}") from None


def _load(path: Path) -> Users:
    try:
        return load_users(path)
    except FileNotFoundError:
        return Users.new(os.urandom)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of the users file, so that only one process writes at a time. The lock is a separate
    file, since a write replaces the users file itself.
    """
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _found(users: Users, name: str) -> User:
    user = users.find(name)
    if user is None:
        raise CommandError(Exit.NOT_FOUND, f"user {name!r} does not exist")
    return user


def _password() -> str:
    """Read a password twice from the terminal, or else the first line of stdin. It is not an argument, since
    other users can read a command line.
    """
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != password:
        raise CommandError(Exit.USAGE, "the two passwords differ")
    return password


def _row(user: User) -> dict[str, object]:
    return {
        "name": user.name,
        "sid": str(user.sid),
        "uid": user.uid if user.uid is not None else "",
        "groups": ",".join(user.groups),
        "password": "set" if user.password else "none",
        "tokens": len(user.tokens),
    }


COMMAND = Group(
    name="user",
    help="manage the users file",
    description="""These commands edit the users file directly; a running server reloads it. Select the
        file with --data or --config. Passwords are read from stdin, or asked for on a terminal.""",
    commands=members(
        Command(
            name="add",
            help="add a user",
            run=_add,
            add_arguments=_add_user,
            examples=(
                Example("alice --uid 1000 --group operators", "asks for a password"),
                Example(
                    "reports --no-password --uid 2001",
                    "a user without a password, known by the uid of its processes",
                ),
            ),
        ),
        Command(
            name="list",
            help="list all users",
            run=_list,
            add_arguments=_add_file,
            examples=(Example("--data /var/lib/msmq-fast", "the users of that data directory"),),
        ),
        Command(
            name="remove",
            help="remove a user",
            run=_remove,
            add_arguments=_add_name,
            examples=(Example("alice", "access entries with the user's SID stay"),),
        ),
        Command(
            name="passwd",
            help="set the password of a user",
            run=_passwd,
            add_arguments=_add_name,
            examples=(Example("alice < password.txt", "the password is the first line of the file"),),
        ),
        Command(
            name="token",
            help="make a token for a user's programs",
            description="""Prints a new secret, once: programs present it over TCP (MSMQ_FAST_TOKEN,
                MSMQ_FAST_TOKEN_FILE) and to the bulk API. The users file holds its hash only. The earlier
                tokens stay, so that programs can change over one after the other; revoke them with
                --replace or --revoke. Open connections stay.""",
            run=_token,
            add_arguments=_add_token,
            examples=(
                Example("billing", "an additional token"),
                Example(
                    "{prog} billing --replace --json | jq -r .token > token",
                    "the only valid token, stored in a file",
                ),
                Example("billing --revoke", "afterwards, no token of the user is valid"),
            ),
        ),
    ),
)
