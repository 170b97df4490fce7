"""What the object storage refuses, and what is not there: one line each, without credentials."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import pytest

from msmq_fast.store.errors import BackupError
from msmq_fast.store.objects.bucket import Bucket
from msmq_fast.store.objects.download import stored
from msmq_fast.store.objects.storage import Interruptible, ObjectStorage
from msmq_fast.store.objects.upload import push
from tests.store.objects.conftest import OWNER, Maker
from tests.support.objects import S3, SECRET, answering

pytestmark = pytest.mark.needs(modules=("obstore", "moto"))


def complaint(url: str) -> str:
    with pytest.raises(BackupError) as caught:
        asyncio.run(stored(Bucket(url)))
    text = str(caught.value)
    assert "\n" not in text
    assert SECRET not in text
    return text


@pytest.fixture
def environment(s3: S3, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_a_bucket_that_does_not_exist(
    environment: pytest.MonkeyPatch, snapshot: Maker, tmp_path: Path
) -> None:
    assert complaint("s3://nothing-here/x") == (
        "s3://nothing-here/x: the bucket nothing-here does not exist; create it first"
    )
    with pytest.raises(BackupError, match="the bucket nothing-here does not exist"):
        asyncio.run(push(snapshot(), Bucket("s3://nothing-here")))
    assert complaint(f"file://{tmp_path}/x").endswith("/x does not exist; create it first")


DENIED = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>AccessDenied</Code><Message>User key is not authorized</Message></Error>"""


def test_access_is_denied(environment: pytest.MonkeyPatch) -> None:
    with answering(403, DENIED) as endpoint:
        environment.setenv("AWS_ENDPOINT_URL", endpoint)
        assert complaint("s3://bucket/x") == "s3://bucket/x: access denied (AccessDenied)"
    with answering(400, b"<Error><Code>InvalidToken</Code></Error>") as endpoint:
        environment.setenv("AWS_ENDPOINT_URL", endpoint)
        assert complaint("s3://bucket/x") == "s3://bucket/x: InvalidToken"


AZURE = {
    "AZURE_STORAGE_ACCOUNT_NAME": "account",
    "AZURE_STORAGE_ACCOUNT_KEY": "YSBzZWNyZXQgdGhhdCBubyBsaW5lIG1heSBzaG93",
    "AZURE_ALLOW_HTTP": "true",
}


def test_the_codes_of_azure_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in AZURE.items():
        monkeypatch.setenv(name, value)
    for status, code, words in (
        (404, "ContainerNotFound", "the bucket container does not exist; create it first"),
        (403, "AuthenticationFailed", "access denied (AuthenticationFailed)"),
        (403, "AuthorizationFailure", "access denied (AuthorizationFailure)"),
    ):
        with answering(status, f"<Error><Code>{code}</Code></Error>".encode()) as endpoint:
            monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"{endpoint}/account")
            assert complaint("az://container/x") == f"az://container/x: {words}"
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME")
    assert "Account must be specified" in complaint("az://container/x")


def test_nothing_listens(environment: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        environment.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{closed.getsockname()[1]}")
        assert complaint("s3://bucket/x").startswith("s3://bucket/x: ")


def test_a_snapshot_thread_is_cancelled_while_the_storage_does_not_answer(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        runner, ended = Interruptible(), []

        def look() -> None:
            try:
                ObjectStorage("s3://bucket/x", tmp_path, keep=1).newest_s(OWNER, runner)
            except BackupError as error:
                ended.append(str(error))

        thread = threading.Thread(target=look)
        thread.start()
        silent.accept()[0].recv(1)
        runner.cancel()
        thread.join(10)
        assert ended == ["the backup was cancelled"]
        look()
        assert len(ended) == 2
