"""The libraries of other projects in the console: unchanged copies, each with its licence."""

from __future__ import annotations

import hashlib
from importlib import resources

VENDOR = resources.files("msmq_fast.console") / "static" / "vendor"


def test_vendored_files_have_the_recorded_hashes() -> None:
    recorded = dict(
        reversed(line.split("  ", 1)) for line in (VENDOR / "SHA256SUMS").read_text().splitlines() if line
    )
    present = {file.name for file in VENDOR.iterdir()} - {"SHA256SUMS", "VERSIONS"}
    assert set(recorded) == present
    for name, digest in recorded.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name


def test_each_library_has_a_licence_and_a_version() -> None:
    versions = (VENDOR / "VERSIONS").read_text()
    for name in ("htmx.min.js", "uplot.min.js", "uplot.min.css"):
        library = name.split(".")[0]
        assert (VENDOR / f"{library}.LICENSE").read_text().strip()
        assert name in versions
