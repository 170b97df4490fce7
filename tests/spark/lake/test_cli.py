"""`msmq-lake` as a program: what users do wrong gets one line and an exit code, before Spark is started."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake import session
from msmq_fast.spark.lake.failures import explained
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import main
from tests.spark.fakeserver import serving
from tests.spark.lake.leases import leased
from tests.support.lakes import write_day


class JavaError(Py4JError):
    """An exception of Java, without Java: Py4JJavaError asks it for its text."""

    java_exception = None


JavaError.__module__ = Py4JError.__module__


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(name: str, **_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(session, "start", start)


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(arguments)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"msmq-lake {arguments[0]}: ")
    assert shown.err.count("\n") == 1, shown.err
    return code, shown.err


def test_no_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"msmq+bulk://127.0.0.1:{probe.getsockname()[1]}"
        code, text = complaint(capsys, "archive", "--lake", str(tmp_path / "lake"), "--url", url)
    assert code == Exit.UNREACHABLE
    assert url in text
    assert "refused" in text
    assert not (tmp_path / "lake").exists()  # nothing is made for nothing


def test_no_right_and_no_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        server.token = "secret"  # noqa: S105
        wrong = tmp_path / "token"
        wrong.write_text("guessed")
        for more in ((), ("--token-file", str(wrong))):
            code, text = complaint(
                capsys, "archive", "--lake", str(tmp_path / "lake"), "--url", server.url, *more
            )
            assert code == Exit.REFUSED
            assert "token" in text
            assert "guessed" not in text


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--url", "ftp://x"), "msmq+bulk://host:port"),
        (("--url", "msmq+bulk://h:1", "--content", "events,mail"), "'mail'"),
        (("--url", "msmq+bulk://h:1", "--redact", "labels"), "'labels'"),
        (("--url", "msmq+bulk://h:1", "--redact", "label,message_id"), "'message_id'"),
        (("--url", "msmq+bulk://h:1", "--name", "../x"), "'../x'"),
    ],
)
def test_wrong_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], word: str
) -> None:
    code, text = complaint(capsys, "archive", "--lake", str(tmp_path / "lake"), *arguments)
    assert code == Exit.USAGE
    assert word in text


@pytest.mark.parametrize("verb", ["audit", "report", "compact", "verify"])
def test_no_lake(tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    code, text = complaint(capsys, verb, "--lake", str(tmp_path / "nothing"))
    assert code == Exit.NOT_FOUND
    assert "archive" in text


@pytest.mark.parametrize("lake", ["ftp://host/lake", "https://bucket/lake", "s3:lake"])
@pytest.mark.parametrize("verb", ["archive", "audit", "report", "compact", "verify", "migrate", "replay"])
def test_where_no_lake_can_be(capsys: pytest.CaptureFixture[str], verb: str, lake: str) -> None:
    more = {"archive": ("--url", "msmq+bulk://127.0.58.1:1")}
    more["replay"] = (*more["archive"], "--to", "orders")
    code, text = complaint(capsys, verb, "--lake", lake, *more.get(verb, ()))
    assert code == Exit.USAGE
    assert "s3:" in text


@pytest.mark.parametrize("verb", ["archive", "audit", "report", "compact", "verify", "replay"])
def test_a_lake_of_an_earlier_release_names_the_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    (tmp_path / "_state").mkdir()
    (tmp_path / "_state" / "lake.json").write_text('{"schema_version": 1}')
    with serving() as server:
        more = {"archive": ("--url", server.url)}
        more["replay"] = (*more["archive"], "--to", "orders")
        code, text = complaint(capsys, verb, "--lake", str(tmp_path), *more.get(verb, ()))
    assert code == Exit.FAILURE
    assert f"msmq-lake migrate --lake {tmp_path}" in text


def bare(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`msmq-lake` in a Python that has none of the packages of the extra."""
    program = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyarrow", "pyspark", "pandas", "lmdb", "deltalake"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from msmq_fast.spark.lake.main import main
sys.exit(main())
"""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_help_needs_no_package_and_a_verb_says_what_is_missing(tmp_path: Path) -> None:
    done = bare("--help")
    assert done.returncode == 0, done.stderr
    assert "msmq-lake" in done.stdout
    assert bare("archive", "--help").returncode == 0
    done = bare("report", "--lake", str(tmp_path))
    assert done.returncode == Exit.FAILURE
    assert done.stderr.count("\n") == 1
    assert "pyarrow is not installed" in done.stderr
    assert "pip install '.[spark]'" in done.stderr


def test_a_report_before_an_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    code, text = complaint(capsys, "report", "--lake", lake.root)
    assert code == Exit.EMPTY
    assert "msmq-lake audit" in text


def test_days_are_days(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["audit", "--lake", str(tmp_path), "--day", "1.3.2026"])
    assert "YYYY-MM-DD" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "--lookback", "-1"),  # nothing would be looked at, and nothing be lost
        ("audit", "--grace", "nan"),
        ("audit", "--poison-aborts", "0"),
        ("compact", "--keep-bronze", "-1"),  # of tomorrow
        ("compact", "--keep-silver", "ten"),
        ("archive", "--url", "x", "--max-rows", "0"),
    ],
)
def test_numbers_that_make_no_sense(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    verb, *more = arguments
    with pytest.raises(SystemExit):
        main([verb, "--lake", str(tmp_path), *more])
    said = capsys.readouterr().err.splitlines()[-1]
    assert arguments[-1] in said
    assert said.startswith("msmq-lake ")


def test_a_file_that_is_no_parquet_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    for table in ("reconciliation", "coverage"):
        write_day(lake, f"gold/{table}", "2026-03-01", pa.table({"verdict": ["ok"]}))
        (file,) = Path(lake.path(f"gold/{table}")).rglob("*.parquet")
        file.write_bytes(b"torn")
    code, text = complaint(capsys, "report", "--lake", lake.root)
    assert code == Exit.FAILURE
    assert ".parquet" in text
    assert "msmq-lake verify" in text


def test_settle_takes_what_is_committed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving() as server:
        queue, settle = leased(server, tmp_path)
        assert complaint(capsys, *settle)[0] == Exit.NOT_FOUND  # planned, not committed
        (tmp_path / "commits" / "0").write_text("v1\n{}")
        assert main([*settle, "--dry-run"]) == 0
        assert len(queue.held) == 5
        assert main([*settle, "--json"]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["removed"] == 3
        assert len(queue.held) == 2
        assert main(settle) == 0  # again: nothing more
        assert len(queue.held) == 2


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (
            "An error occurred …\njava.io.IOException: No space left on device\n\tat java.base/…",
            "disk of the lake is full",
        ),
        ("org.apache.hadoop.security.AccessControlException: Permission denied: user=x", "cannot be written"),
        (
            "…\n  File …\nmsmq_fast.spark.losses.SourceError: GET /rows: no such queue\n",
            "GET /rows: no such queue",
        ),
        (
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.",
            "Java 17 or 21",
        ),
        ("…\njava.lang.OutOfMemoryError: Java heap space\n\tat org.…", "SPARK_DRIVER_MEMORY"),
        (
            "[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back.",
            "this machine is too busy",
        ),
    ],
)
def test_what_spark_says_at_length_is_one_line(text: str, word: str) -> None:
    failure = explained(RuntimeError(text))
    assert failure is not None
    assert word in str(failure)
    assert "\n" not in str(failure)


def test_what_a_worker_of_python_says_is_in_the_line() -> None:
    text = (
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        "  File \"worker.py\", line 1\nModuleNotFoundError: No module named 'pandas'\n\tat java.base/…"
    )
    failure = explained(PySparkException(text))
    assert failure is not None
    assert str(failure) == (
        "An exception was thrown from the Python worker: ModuleNotFoundError: No module named 'pandas'"
    )


def test_what_java_says_through_py4j_is_its_message() -> None:
    text = "An error occurred while calling o9.x.\n: java.io.IOException: torn\n\tat org.apache…"
    failure = explained(JavaError(text))
    assert failure is not None
    assert str(failure) == "java.io.IOException: torn"
    for error in (Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError(111, "refused")):
        failure = explained(error)
        assert failure is not None
        assert "Java has ended" in str(failure)


def test_what_nobody_knows_is_not_explained_away() -> None:
    assert explained(ZeroDivisionError("division by zero")) is None
