"""How programs and the server prove who they are: tokens of the configuration, certificates of listeners."""

from __future__ import annotations

import ssl
from pathlib import Path

from msmq_fast.app.auth import TokenTable
from msmq_fast.security.logons import LogonLimits
from msmq_fast.server.config import Config
from msmq_fast.server.declarations import DeclarationError

__all__ = ["TlsFiles", "token_table"]


def token_table(config: Config, logons: LogonLimits | None = None) -> TokenTable:
    """The tokens of the [[users]]; `logons` slows down who guesses them.

    Raises DeclarationError for a file that cannot be read or is empty.
    """
    users = {}
    for user in config.users:
        token = user.token
        if user.token_file is not None:
            try:
                token = user.token_file.read_text(encoding="utf-8").strip()
            except OSError as error:
                raise DeclarationError(f'user "{user.name}": {user.token_file}: {error.strerror}') from None
        if not token:
            raise DeclarationError(f'user "{user.name}": the token is empty')
        users[user.name] = token
    return TokenTable(users, {user.name: user.groups for user in config.users}, logons)


class TlsFiles:
    """The certificates of the listeners, in TLS contexts that can be loaded again while they are in use."""

    def __init__(self) -> None:
        self._loaded: list[tuple[ssl.SSLContext, Path, Path, str]] = []

    def context(self, certificate: Path | None, key: Path | None, name: str) -> ssl.SSLContext | None:
        """TLS for a listener, None without files. Raises DeclarationError, which names the key `name`."""
        if certificate is None or key is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        _load(context, certificate, key, name)
        self._loaded.append((context, certificate, key, name))
        return context

    def reload(self) -> list[str]:
        """Read all files again for connections to come. A file that cannot be used leaves its context as it
        was; one line for each of them.
        """
        complaints = []
        for context, certificate, key, name in self._loaded:
            try:
                _load(
                    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate, key, name
                )  # nothing is half loaded
                _load(context, certificate, key, name)
            except DeclarationError as error:
                complaints.append(str(error))
        return complaints


def _load(context: ssl.SSLContext, certificate: Path, key: Path, name: str) -> None:
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # an SSLError is one
        raise DeclarationError(f"{name}: {_unusable(certificate, key, error)}") from None


def _unusable(certificate: Path, key: Path, error: OSError) -> str:
    """Which of the two files is wrong, and why."""
    for file in (certificate, key):
        try:
            file.open("rb").close()
        except OSError as problem:
            return f"{file}: {problem.strerror}"
    reason = getattr(error, "reason", None) or error
    return f"{certificate} and {key} are no certificate chain and its private key (PEM): {reason}"
