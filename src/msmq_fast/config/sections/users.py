"""Tables [[users]]: programs that use the application protocol over TCP."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msmq_fast.config import kinds
from msmq_fast.config.kinds import key

__all__ = ["UserDeclaration"]


@dataclass(slots=True)
class UserDeclaration:
    """One [[users]] table: a program that may use the application protocol over TCP."""

    name: str = key(kinds.TEXT, "", "what the user is called in logs")
    token: str = key(kinds.TEXT, "", "secret that the program presents")
    token_file: Path | None = key(kinds.PATH, None, "file that holds the secret")  # noqa: RUF009
    token_sha256: str = key(kinds.SHA256, "", "SHA-256 of the secret, which then stands nowhere")
    groups: tuple[str, ...] = key(kinds.TEXTS, (), "groups, such as administrators")
