"""The comparison with other brokers: ratios by round, brokers that are not installed, and each that is."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench import brokers, machine, peers
from bench.__main__ import main
from bench.brokers import BROKERS, Broker
from bench.generators import GeneratorError, run_generator
from bench.peers import MEASURES, Comparison

FAKE = Path(__file__).parent / "fake_redis.py"


class FakeRedis(brokers.Redis):
    @classmethod
    def program(cls) -> str | None:
        return sys.executable

    @classmethod
    def version(cls) -> str:
        return "0.1"

    def _start(self) -> Sequence[str]:
        return [*[sys.executable, str(FAKE)], *super()._start()[1:]]


class NotThere(Broker):
    name = "Other"
    install = "apt-get install other"

    @classmethod
    def program(cls) -> str | None:
        return None


class Broken(FakeRedis):
    def _start(self) -> Sequence[str]:
        return [sys.executable, "-c", "raise SystemExit('no license')"]


@pytest.fixture(autouse=True)
def _no_machine_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    known = machine.facts(Path("/"), probe=False)
    monkeypatch.setattr(machine, "facts", lambda directory: known)


def compared(directory: Path, *arguments: str) -> dict[str, Any]:
    out = directory / "out.json"
    assert main(["peers", "--seconds", "0.2", *arguments, "--dir", str(directory), "--json", str(out)]) == 0
    found: dict[str, Any] = json.loads(out.read_text())["peers"]
    for runs in found["measures"].values():
        assert runs.keys() == {"msmq-fast", "redis"}
        assert all(figures["rate"] > 0 for rounds in runs.values() for figures in rounds)
    assert [path.name for path in directory.iterdir()] == ["out.json"]
    return found


@pytest.mark.long(seconds=14)
def test_brokers_take_turns_and_those_that_are_not_there_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, kind in (("redis", FakeRedis), ("nats", NotThere), ("postgres", Broken)):
        monkeypatch.setitem(BROKERS, name, kind)
    some = ["--brokers", "redis", "nats", "postgres", "--only", "in-8", "one-at-a-time"]
    found = compared(tmp_path, "--rounds", "2", *some)
    assert found["measures"].keys() == {"in-8", "one-at-a-time"}
    for name, runs in found["measures"].items():
        assert [len(rounds) for rounds in runs.values()] == [2, 2]
        assert ("p99" in runs["redis"][0]) == (name == "one-at-a-time")
    assert len(found["disk"]) == 4
    shown = capsys.readouterr().out
    assert "Other is left out: not installed (apt-get install other)" in shown
    assert "is left out: Redis does not start: no license" in shown
    assert "µs at p99" in shown


@pytest.mark.long(seconds=30)
@pytest.mark.timeout(300)
def test_every_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BROKERS, "redis", FakeRedis)
    found = compared(tmp_path, "--rounds", "1", "--brokers", "redis")
    assert found["measures"].keys() == MEASURES.keys()


def test_a_ratio_is_of_one_round() -> None:
    runs = {"msmq-fast": [{"rate": 100.0}, {"rate": 300.0}], "redis": [{"rate": 50.0}, {"rate": 300.0}]}
    floors = [{"disk_lone_p50_us": 90.0, "disk_batch_p50_us": 200.0}]
    shown = peers.table(Comparison(2, 2, {"redis": "7.0"}, {"in-8": runs}, floors))
    _, _, own, redis, *_ = shown.splitlines()
    assert own.split() == ["msmq-fast", "200", "100", "300"]
    assert redis.split() == ["Redis", "7.0", "175", "50", "300", "1.50", "1.00", "2.00"]
    assert "append and fdatasync of 1.3 KB 90 µs, of 306 KB 200 µs" in shown


@pytest.mark.long(seconds=40)
@pytest.mark.parametrize("memory", [False, True])
def test_the_clients_of_the_brokers_that_are_installed(memory: bool) -> None:
    for kind in BROKERS.values():
        if kind.program() is not None and (kind.express or not memory):
            serve_and_load(kind, memory=memory)


def serve_and_load(kind: type[Broker], *, memory: bool) -> None:
    with kind(Path(tempfile.gettempdir()), memory=memory) as broker:  # where its user may go
        for number, options in enumerate(
            (["--produce", "3"], ["--consume", "1"], ["--consume", "1", "--lockstep"])
        ):
            arguments = [*broker.arguments(unix=bool(number)), "--queue", f"bench{number}", "--warmup", "0.1"]
            found = run_generator("peer_load", [*arguments, "--seconds", "0.3", *options])
            assert found["in_per_s"] > 0
            if number:
                assert found["out_per_s"] > 0
                assert found["end_to_end_time"]["p50_us"] > 0
    assert not broker.directory.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--protocol", "other"], "--protocol, --connect, --queue and --seconds are needed"),
        (["--protocol", "redis", "--connect", "127.0.0.1:1", "--queue", "q", "--seconds", "1"], "connect"),
    ],
)
def test_a_load_that_cannot_be_is_an_error(arguments: list[str], said: str) -> None:
    with pytest.raises(GeneratorError, match=said):
        run_generator("peer_load", arguments)
