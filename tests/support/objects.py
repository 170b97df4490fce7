"""A server that speaks the protocol of S3, in a process of its own: moto's."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

SECRET = "a-secret-that-no-line-may-show"  # noqa: S105


@dataclass
class S3:
    """A running server; `environment` is what programs need to reach it."""

    endpoint: str
    environment: dict[str, str]
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def client(self) -> Any:
        """A client of boto3."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="key",
            aws_secret_access_key=SECRET,
        )

    def bucket(self) -> str:
        """Create a bucket and return its name."""
        name = f"bucket-{next(self._numbers)}"
        self.client.create_bucket(Bucket=name)
        return name


@contextmanager
def s3_server() -> Iterator[S3]:
    """Run a server until the end of the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    program = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    urllib.request.urlopen(f"{endpoint}/moto-api/", timeout=5).close()  # noqa: S310
                    break
                except OSError:
                    assert time.monotonic() < deadline, "moto's server does not answer"
            yield S3(
                endpoint,
                {
                    "AWS_ENDPOINT_URL": endpoint,
                    "AWS_ALLOW_HTTP": "true",
                    "AWS_REGION": "us-east-1",
                    "AWS_ACCESS_KEY_ID": "key",
                    "AWS_SECRET_ACCESS_KEY": SECRET,
                },
            )
        finally:
            process.kill()


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """Run a web server that gives each request the same answer; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
