"""Snapshots of a small store, and object storage of each kind that this machine can offer."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from msmq_fast.store.backup import MANIFEST_NAME, Manifest
from msmq_fast.store.identity import DATA_NAME
from tests.support.objects import S3, s3_server

GUID = "67452301ab89efcd0123456789abcdef"  # byte order of the wire
OWNER = "0123456789abcdef0123456789abcdef"
OTHER = "f" * 32


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    with s3_server() as running:
        yield running


@pytest.fixture(params=["s3", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty place, with its credentials in the environment."""
    if request.param == "file":
        place = tmp_path / "object storage"
        place.mkdir()
        return f"file://{place}"
    s3: S3 = request.getfixturevalue("s3")
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{s3.bucket()}/backups/mq1"


class Maker:
    """Makes directories as `Backup` leaves them, with random data."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._count = 0

    def __call__(self, created_s: int = 1_800_000_000, size: int = 100_000, guid: str = GUID) -> Path:
        self._count += 1
        directory = self._place / f"snapshot-{self._count}"
        directory.mkdir()
        data = os.urandom(size)
        (directory / DATA_NAME).write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        manifest = Manifest(2, guid, 1, 1, created_s, size, digest)
        (directory / MANIFEST_NAME).write_text(json.dumps(asdict(manifest)))
        return directory


@pytest.fixture
def snapshot(tmp_path: Path) -> Maker:
    return Maker(tmp_path)
