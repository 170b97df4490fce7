"""Credentials of programs and of the server: tokens of the configuration, certificates of listeners."""

from __future__ import annotations

import contextlib
import logging
import ssl
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.x509 import load_pem_x509_certificate

from msmq_fast.app.auth import TokenTable
from msmq_fast.config.sections import Config
from msmq_fast.security.logons import LogonLimits
from msmq_fast.security.users import Users
from msmq_fast.server.declarations import DeclarationError

__all__ = ["SHORT_TOKEN", "TlsFiles", "token_table", "warn_of_readable_files"]

_log = logging.getLogger("msmq_fast.server")

SHORT_TOKEN: Final = 16
"""Minimum length of a token in characters; shorter ones are logged."""


def warn_of_readable_files(config: Config) -> None:
    """Log each file with secrets that every user of this computer can read."""
    listen = config.listen
    files = [user.token_file for user in config.users]
    files += [config.remote.password_file, listen.app.tls_key, listen.admin.tls_key, listen.https.tls_key]
    if config.file is not None and (config.protection.key or any(user.token for user in config.users)):
        files.append(config.file)
    for path in files:
        # A file that is missing or forbidden is reported where it is used.
        with contextlib.suppress(OSError):
            if path is not None and path.stat().st_mode & stat.S_IROTH:
                _log.warning("%s can be read by every user of this computer, and holds a secret", path)


def token_table(
    config: Config, logons: LogonLimits | None = None, accounts: Callable[[], Users] | None = None
) -> TokenTable:
    """Return the table of the tokens in [[users]] and in the users file. `accounts` returns the current
    contents of the users file.

    `logons` limits the wrong tokens from one address. The names of users with short tokens are logged.

    Raises DeclarationError if a token file cannot be read, or a token is empty.
    """
    users: dict[str, str | bytes] = {}
    for user in config.users:
        if user.token_sha256:
            users[user.name] = bytes.fromhex(user.token_sha256)
            continue
        token = user.token
        if user.token_file is not None:
            try:
                token = user.token_file.read_text(encoding="utf-8").strip()
            except OSError as error:
                raise DeclarationError(
                    f'user "{user.name}": the token file {user.token_file} cannot be read: {error.strerror}'
                ) from None
        if not token:
            raise DeclarationError(f'user "{user.name}": the token is empty')
        if len(token) < SHORT_TOKEN:
            _log.warning(
                'the token of user "%s" can be guessed: it has fewer than %d characters; '
                "msmq-fast user token makes a long one",
                user.name,
                SHORT_TOKEN,
            )
        users[user.name] = token
    return TokenTable(users, {user.name: user.groups for user in config.users}, logons, accounts)


@dataclass(slots=True)
class _Loaded:
    """A TLS context, the files from which it was loaded, and `name`, the configuration key that names these
    files. `expires`: end of the certificate's validity in Unix seconds; None if it is not known.
    """

    context: ssl.SSLContext
    certificate: Path
    key: Path
    name: str
    expires: float | None = None


class TlsFiles:
    """The certificates of the listeners, in TLS contexts that can be reloaded while they are in use."""

    def __init__(self) -> None:
        self._loaded: list[_Loaded] = []

    def context(self, certificate: Path | None, key: Path | None, name: str) -> ssl.SSLContext | None:
        """Return a TLS context with the certificate for a listener; None if no files are given. Raises
        DeclarationError, whose text names the configuration key `name`.
        """
        if certificate is None or key is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        _load(context, certificate, key, name)
        self._loaded.append(_Loaded(context, certificate, key, name, _expiry(certificate)))
        return context

    def expiries(self) -> Iterator[tuple[str, float]]:
        """Yield (configuration key, end of validity in Unix seconds) of each certificate in use."""
        for one in self._loaded:
            if one.expires is not None:
                yield one.name, one.expires

    def prepare(self, config: Config) -> Callable[[], None]:
        """Check all certificates and keys that `config` names, and return a function that loads them for new
        connections. Raises DeclarationError if a file is invalid; nothing is then changed.
        """
        wanted = [_Loaded(one.context, *_files(config, one), one.name) for one in self._loaded]
        for one in wanted:
            _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), one.certificate, one.key, one.name)

        def commit() -> None:
            for one in wanted:
                _load(one.context, one.certificate, one.key, one.name)
                one.expires = _expiry(one.certificate)
            self._loaded = wanted

        return commit


def _files(config: Config, loaded: _Loaded) -> tuple[Path, Path]:
    """Return (certificate, key): the files that `config` names for a context or, if it names none, those from
    which the context was loaded.
    """
    section, _, key = loaded.name.rpartition(".")
    listener = config.section(section)
    if key == "tls_certificate" and listener.tls_certificate is not None and listener.tls_key is not None:
        return listener.tls_certificate, listener.tls_key
    return loaded.certificate, loaded.key


def _load(context: ssl.SSLContext, certificate: Path, key: Path, name: str) -> None:
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # an SSLError is one
        raise DeclarationError(f"{name}: {_unusable(certificate, key, error)}") from None


def _expiry(certificate: Path) -> float | None:
    """Return the end of the validity, in Unix seconds, of the first certificate in a PEM file, which is the
    one that the listener presents; None if it cannot be read.
    """
    try:
        return load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc.timestamp()
    except (OSError, ValueError):
        return None  # OpenSSL has accepted the file: the metric alone is missing


def _unusable(certificate: Path, key: Path, error: OSError) -> str:
    """Return a text that says which of the two files is wrong, and why."""
    for file in (certificate, key):
        try:
            file.open("rb").close()
        except OSError as problem:
            return f"{file}: {problem.strerror}"
    reason = getattr(error, "reason", None) or error
    return f"{certificate} and {key} are not a certificate chain and its private key in PEM: {reason}"
