"""The grammar of the verbs about signatures and encryption: `certificate`, `key`, and the flags of `send`."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["HASHES", "LEVELS", "add_certificate", "add_key", "add_protection"]

Verbs = Any  # argparse's own type for subparsers is private

LEVELS = {"base": 1, "enhanced": 3, "advanced": 5}
HASHES = {
    "md2": 0x8001,
    "md4": 0x8002,
    "md5": 0x8003,
    "sha1": 0x8004,
    "sha256": 0x800C,
    "sha512": 0x800E,
}


def add_protection(send: argparse.ArgumentParser) -> None:
    """Flags of `send`."""
    send.add_argument("--sign", action="store_true", help="sign with a certificate of the caller")
    send.add_argument("--sign-version", choices=["1", "2"], default="2", help="of MSMQ 1.0 or 2.0 (2)")
    send.add_argument(
        "--certificate", type=_digest, metavar="DIGEST", help="the one with this MD5 (internal)"
    )
    send.add_argument("--hash", choices=list(HASHES), help="hash algorithm of the signature")
    send.add_argument(
        "--encrypt",
        nargs="?",
        const="advanced",
        choices=list(LEVELS),
        help="encrypt at least so; write --encrypt=LEVEL (advanced)",
    )
    send.add_argument("--sender-id", action="store_true", help="attach the SID of the caller, unsigned too")


def _digest(text: str) -> bytes:
    try:
        value = bytes.fromhex(text)
    except ValueError:
        value = b""
    if len(value) != 16:
        raise argparse.ArgumentTypeError("a certificate is named by its MD5: 32 hexadecimal digits")
    return value


def add_certificate(verbs: Verbs, client: argparse.ArgumentParser) -> None:
    """`certificate create|list|register|remove`."""
    certificate = verbs.add_parser("certificate", help="certificates that sign messages")
    actions = certificate.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=type(client)
    )

    def action(name: str, about: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = actions.add_parser(name, parents=[client], help=about)
        added.add_argument("--user", default="", metavar="NAME", help="of another user or SID (the caller)")
        return added

    action("create", "make an internal certificate, in place of the one before")
    action("list", "those of a user").add_argument("--all", action="store_true", help="those of everybody")
    register = action("register", "bring an external certificate")
    register.add_argument("file", metavar="FILE", help="X.509 in PEM or DER")
    register.add_argument("--key", metavar="FILE", help="its private key in PEM, for the server to sign with")
    action("remove", "forget a certificate").add_argument("identifier", metavar="ID")


def add_key(verbs: Verbs, client: argparse.ArgumentParser) -> None:
    """`key show|import|forget`."""
    key = verbs.add_parser("key", help="keys for which messages are encrypted")
    actions = key.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=type(client))
    show = actions.add_parser("show", parents=[client], help="own public keys, and those that were imported")
    show.add_argument("--own", action="store_true", help="the own ones only")
    tell = actions.add_parser(
        "import",
        parents=[client],
        help="public keys of another queue manager, as its `key show --json` has them",
    )
    tell.add_argument("file", metavar="FILE", help="- for stdin")
    tell.add_argument("--guid", metavar="GUID", help="FILE is a bare MQDSPUBLICKEYS of this queue manager")
    actions.add_parser("forget", parents=[client], help="imported keys").add_argument("guid", metavar="GUID")
