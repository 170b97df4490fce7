"""TLS of the HTTPS port: the certificate, further certificates for other names (SNI), and the check of client
certificates.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from cryptography import x509

from msmq_fast.config.sections import Config
from msmq_fast.server.credentials import TlsFiles
from msmq_fast.server.declarations import DeclarationError

__all__ = ["https_context"]

_MORE: Final = "listen.https.tls_more_certificates"


def https_context(config: Config, files: TlsFiles) -> ssl.SSLContext | None:
    """Return the TLS context of the HTTPS port; None if the port is off or has no certificate. Raises
    DeclarationError if a file is invalid.
    """
    listen = config.listen.https
    if listen.port is None:
        return None
    context = files.context(listen.tls_certificate, listen.tls_key, "listen.https.tls_certificate")
    if context is None:
        return None
    _ask_clients(context, listen.tls_client_ca)
    others: dict[str, ssl.SSLContext] = {}
    for text in listen.tls_more_certificates:
        path = Path(text).expanduser()
        other = files.context(path, path, _MORE)
        assert other is not None  # noqa: S101 - both files are given
        _ask_clients(other, listen.tls_client_ca)
        others |= dict.fromkeys(_names(path), other)
    if others:

        def choose(connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
            """Select the certificate for the name that the client sends: the certificate for exactly this
            name or, if there is none, the one for the name with a wildcard as its first label (RFC 6125
            6.4.3).
            """
            asked = (name or "").lower()
            found = others.get(asked) or others.get(f"*.{asked.partition('.')[2]}")
            if found is not None:
                connection.context = found

        context.sni_callback = choose
    return context


def _ask_clients(context: ssl.SSLContext, authorities: Path | None) -> None:
    if authorities is None:
        return
    try:
        context.load_verify_locations(authorities)
    except OSError as error:  # an SSLError is one
        reason = getattr(error, "reason", None) or error.strerror
        raise DeclarationError(f"listen.https.tls_client_ca: {authorities}: {reason}") from None
    context.verify_mode = ssl.CERT_REQUIRED


def _names(path: Path) -> list[str]:
    """Return the DNS names in a certificate file, in lower case."""
    try:
        certificate = x509.load_pem_x509_certificates(path.read_bytes())[0]
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound) as error:
        raise DeclarationError(f"{_MORE}: {path}: expected a certificate with DNS names: {error}") from None
    return [name.lower() for name in names.get_values_for_type(x509.DNSName)]
