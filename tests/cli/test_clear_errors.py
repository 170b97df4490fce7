"""What people type wrong most often: one short line that names the right way, and the exit code for it."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.processes.servers import Server, certify, command, data_directory

FAR = r"DIRECT=TCP:127.0.0.94\private$\far"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, "--name", "ALPHA", "--app-port", "0").start()
        try:
            running.ok("queue", "create", "orders")
            yield running
        finally:
            running.kill()


def refused(server: Server, code: Exit, *words: str) -> str:
    """The complaint of a command, which is one line."""
    done = server.run(*words)
    assert done.returncode == code, done
    assert done.stderr.count(b"\n") == 1
    return done.stderr.decode()


def test_explain_answers_by_its_exit_code(server: Server) -> None:
    server.ok("acl", "deny", "orders", "--user", "uid:4712", "--right", "receive")
    asked = ("acl", "explain", "orders", "--user", "uid:4712", "--right")
    assert server.run(*asked, "send").returncode == Exit.OK
    denied = server.run(*asked, "receive")
    assert denied.returncode == Exit.FAILURE
    assert b"decision:  denied" in denied.stdout


def test_a_user_of_the_computer_has_a_name(server: Server) -> None:
    name = getpass.getuser()
    server.ok("acl", "grant", "orders", "--user", f"unix:{name}", "--right", "peek")
    assert f"uid:{os.getuid()}" in server.run("acl", "show", "orders").stdout.decode()
    complaint = refused(server, Exit.REFUSED, "acl", "own", "orders", "--user", "unix:no-such-user")
    assert 'this computer has no user "no-such-user"' in complaint


def test_an_administration_queue_without_acknowledgments_is_remarked(server: Server) -> None:
    done = server.run("send", "orders", "--body", "x", "--admin-queue", "orders")
    assert done.returncode == Exit.OK
    assert done.stderr == b"msmq-fast send: --admin-queue has no effect without --ack\n"
    asked = ("--admin-queue", "orders", "--ack", "nack-reach")
    assert server.run("send", "orders", "--body", "x", *asked).stderr == b""


def test_purging_what_waits_for_another_computer(server: Server) -> None:
    server.ok("send", FAR, "--body", "x", "--recoverable")
    complaint = refused(server, Exit.REFUSED, "queue", "purge", FAR)
    assert complaint.endswith(f"msmq-fast outgoing purge '{FAR}'\n")
    assert "outgoing purge" not in refused(server, Exit.REFUSED, "queue", "purge", f"{FAR}2")


@pytest.mark.parametrize(
    "words",
    [
        ("{}",),
        ("receive", "orders", "--{}"),
        ("receive", "orders", "{}"),
        ("receive", "orders", "--count", "{}"),
        ("peek", "orders", "--id={}"),
        ("queue", "create", "other", "--privacy", "{}"),
        ("queue", "set", "orders", "--label", "{}"),
        ("acl", "grant", "orders", "--user", "{}", "--right", "send"),
    ],
)
def test_long_words_are_not_repeated_whole(server: Server, words: tuple[str, ...]) -> None:
    done = server.run(*(word.format("z" * 2000) for word in words))
    assert done.returncode != Exit.OK
    assert b"z" * 40 in done.stderr
    assert b"z" * 61 not in done.stderr


def test_a_path_is_repeated_whole(server: Server, tmp_path: Path) -> None:
    path = str(tmp_path / ("d" * 80) / "orders.msgs")
    assert path in refused(server, Exit.FAILURE, "send", "orders", "--file", path)


def test_the_other_scheme(server: Server, tmp_path: Path) -> None:
    plain = f"127.0.0.1:{server.port('app-tcp')}"
    done = command("status", "--endpoint", f"tls://{plain}")
    assert done.returncode == Exit.UNREACHABLE
    assert done.stderr.decode().endswith(f": a port without TLS needs tcp://{plain}\n")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    certify(key, certificate, "subjectAltName=IP:127.0.0.1")
    environment = {
        "MSMQ_FAST_LISTEN__APP__TLS_CERTIFICATE": str(certificate),
        "MSMQ_FAST_LISTEN__APP__TLS_KEY": str(key),
    }
    with data_directory() as data:
        secured = Server(data, "--app-port", "0", environment=environment).start()
        try:
            address = f"127.0.0.1:{secured.port('app-tcp')}"
            done = command("status", "--endpoint", f"tcp://{address}")
        finally:
            secured.kill()
    assert done.returncode == Exit.UNREACHABLE
    assert done.stderr.decode().endswith(f": a port with TLS needs tls://{address}\n")


def test_an_address_of_another_computer(tmp_path: Path) -> None:
    for host in ("192.0.2.1", "no-such-host.invalid"):
        done = command("serve", "--data", str(tmp_path / "data"), "--host", host, "--port", "0")
        assert done.returncode == Exit.USAGE
        last = done.stderr.decode().splitlines()[-1]
        assert f"{host}" in last
        assert "is not an address of this computer" in last


def test_users_before_the_first_start(tmp_path: Path) -> None:
    directory = tmp_path / "missing"
    done = command("user", "add", "alice", "--no-password", "--data", str(directory))
    assert done.returncode == Exit.USAGE
    assert done.stderr.decode().startswith(f"msmq-fast user add: {directory} does not exist: ")


def test_the_review_does_not_refer_to_itself() -> None:
    first = command("security", "review").stdout.decode().splitlines()[0]
    assert first.startswith("security: windows profile, open: ")
    assert "security review" not in first
