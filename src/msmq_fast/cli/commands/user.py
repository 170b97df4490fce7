"""The verb `user`: the users file. It works on the file, not through the server, which notices the change."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import getpass
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from msmq_fast.cli.endpoint import configuration
from msmq_fast.cli.session import show, show_table
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import sid
from msmq_fast.security.users import User, Users, UsersFileError
from msmq_fast.security.usersfile import load_users, save_users

__all__ = ["run_user"]

_COLUMNS = ("name", "sid", "uid", "groups", "password")


def run_user(arguments: argparse.Namespace) -> int:
    """`msmq-fast user …`."""
    path = _path(arguments)
    try:
        if arguments.action == "list":
            rows = [_row(user) for user in _load(path).users.values()]
            show_table(rows, _COLUMNS, as_json=arguments.json)
            return Exit.OK
        with _locked(path):
            users = _load(path)
            user = _change(users, arguments)
            save_users(path, users)
    except UsersFileError as error:
        raise CommandError(Exit.USAGE, str(error)) from None
    except OSError as error:
        raise CommandError(Exit.FAILURE, f"{path}: {error.strerror or error}") from None
    show({"removed": user.name} if arguments.action == "remove" else _row(user), as_json=arguments.json)
    return Exit.OK


def _path(arguments: argparse.Namespace) -> Path:
    overrides = {"server.data": arguments.data} if arguments.data else {}
    return configuration(getattr(arguments, "config", None), overrides).users_file


def _load(path: Path) -> Users:
    try:
        return load_users(path)
    except FileNotFoundError:
        return Users.new(os.urandom)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One writer at a time; the file itself is replaced, so the lock is on another beside it."""
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _change(users: Users, arguments: argparse.Namespace) -> User:
    match arguments.action:
        case "add":
            try:
                own = sid(arguments.sid) if arguments.sid else None
            except SecurityDataError as error:
                raise CommandError(Exit.USAGE, str(error)) from None
            password = None if arguments.no_password else _password()
            users.add(arguments.name, uid=arguments.uid, groups=arguments.group, own_sid=own)
            if password is not None:
                users.set_password(arguments.name, password, os.urandom)
        case "passwd":
            if users.find(arguments.name) is None:
                raise CommandError(Exit.NOT_FOUND, f"there is no user {arguments.name!r}")
            users.set_password(arguments.name, _password(), os.urandom)
        case "remove":
            if users.find(arguments.name) is None:
                raise CommandError(Exit.NOT_FOUND, f"there is no user {arguments.name!r}")
            return users.remove(arguments.name)
    changed = users.find(arguments.name)
    assert changed is not None  # noqa: S101 - it was added or found above
    return changed


def _password() -> str:
    """From the terminal, twice; else the first line of stdin. Others see what is on a command line."""
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
    }
