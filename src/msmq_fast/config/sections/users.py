"""Tables [[users]]: tokens of programs that connect over TCP or use the bulk API."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msmq_fast.config import kinds
from msmq_fast.config.kinds import key

__all__ = ["UserDeclaration"]


@dataclass(slots=True)
class UserDeclaration:
    """Tables [[users]]: tokens of programs that connect over TCP or use the bulk API.

    Deprecated: `msmq-fast user token NAME` puts the token of a user into the users file, hashed, and a
    running server accepts it at once.

    Set one of `token`, `token_file` and `token_sha256`. In a container, `token_file` suits a mounted
    secret. `openssl rand -hex 32` makes a token, and `printf %s TOKEN | sha256sum` its digest. The server
    logs a line for each token of fewer than 16 characters, and for each file with a secret that every
    user of the computer can read. Tokens do not expire: remove or replace the entry and send SIGHUP.
    """

    name: str = key(kinds.TEXT, "", "name of the user")
    token: str = key(kinds.TEXT, "", "secret that the program presents", secret=True)
    token_file: Path | None = key(kinds.PATH, None, "file that holds the secret")
    token_sha256: str = key(
        kinds.SHA256, "", "SHA-256 of the secret, if the file shall not hold the secret itself"
    )
    groups: tuple[str, ...] = key(kinds.TEXTS, (), "groups of the user, such as administrators")
