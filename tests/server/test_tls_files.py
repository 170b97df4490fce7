"""Files for TLS that cannot be used: one line that names the key of the configuration and the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from msmq_fast.server.credentials import TlsFiles
from msmq_fast.server.declarations import DeclarationError
from msmq_fast.server.srmp.sending import _verifying

NAME = "listen.https.tls_certificate"
MISSING = "No such file or directory"


def complaint(use: Callable[[], object]) -> str:
    with pytest.raises(DeclarationError) as caught:
        use()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_certificate_and_its_key(tmp_path: Path) -> None:
    there, missing = tmp_path / "there.pem", tmp_path / "missing.pem"
    there.write_text("no PEM", encoding="ascii")
    assert complaint(lambda: TlsFiles().context(missing, there, NAME)) == f"{NAME}: {missing}: {MISSING}"
    assert complaint(lambda: TlsFiles().context(there, missing, NAME)) == f"{NAME}: {missing}: {MISSING}"
    shown = complaint(lambda: TlsFiles().context(there, there, NAME))
    assert shown.startswith(
        f"{NAME}: {there} and {there} are not a certificate chain and its private key in PEM: "
    )


def test_certificates_to_verify_with(tmp_path: Path) -> None:
    there, missing = tmp_path / "there.pem", tmp_path / "missing.pem"
    there.write_text("no PEM", encoding="ascii")
    start = "certificates cannot be loaded: "
    assert complaint(lambda: _verifying(missing)) == f"srmp.ca_file: {missing}: {start}{MISSING}"
    assert complaint(lambda: _verifying(there)).startswith(f"srmp.ca_file: {there}: {start}")
