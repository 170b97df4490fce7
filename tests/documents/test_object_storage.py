"""The page about object storage, typed with a server that speaks S3 where the other test has a directory."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.support.objects import s3_server
from tests.support.processes.guides import Preparation, Reader

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "object-storage.md"


@pytest.mark.needs(modules=("obstore", "moto"))
def test_each_line_does_with_s3_what_the_page_says() -> None:
    prepared = Preparation(
        server=True,
        replace={"/backup/": "$PWD/", "/var/lib/msmq-fast": "$PWD/data", "/safe/": "$PWD/"},
        before={
            "msmq-fast backup restore s3://backups/mq1 --data /var/lib/msmq-fast": [
                "^C",
                "mv data before",
                "cp before/secrets.key .",
            ],
            "msmq-fast backup create /backup/today": ["msmq-fast serve --data ./data"],
        },
    )
    with s3_server() as s3, tempfile.TemporaryDirectory(prefix="msmq") as folder:
        s3.client.create_bucket(Bucket="backups")
        reader = Reader(Path(folder))
        reader.environment |= s3.environment | {"MSMQ_FAST_BACKUP__URL": "s3://backups/mq1"}
        try:
            assert reader.follow(PAGE, prepared) == 8
        finally:
            reader.close()
