"""Remote readers of all kinds under the eyes of Wireshark: what goes over the RPC ports is sound."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.captures import shark

ROOT = Path(__file__).parents[2]
TRAFFIC = (
    "tests/server/test_rpc_mapper.py",
    "tests/server/test_rpc_life.py",
    "tests/server/test_rpc_policy.py",
    "tests/rpc/services/test_qmcomm_impacket.py",
    "tests/rpc/interop/test_impacket_qm2qm.py",
)
OPTIONS = ("-o", "tcp.try_heuristic_first:TRUE")
REQUEST, RESPONSE, FAULT, BIND, BIND_ACK = "0", "2", "3", "11", "12"
HEADER = "24"  # bytes of a request without a stub
EPT_S_CANT_PERFORM_OP = 0x6D8
# ept_insert and ept_delete: Wireshark expects the parameters of C706, appendix O; since Vista they have none
# (MS-RPCE 2.2.1.2.6 with note 28, 2.2.1.2.7 with note 29).
NO_LONGER_THERE = "(epm.opnum == 0 || epm.opnum == 1)"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tests of RPC over sockets in a network of their own, captured."""
    path = tmp_path_factory.mktemp("shark") / "rpc.pcapng"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    isolated = [
        "unshare",
        "--net",
        "--map-root-user",
        sys.executable,
        "-m",
        "tests.support.processes.isolated",
    ]
    done = subprocess.run(
        [*isolated, str(path), "-q", "-p", "no:cacheprovider", *TRAFFIC],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=False,
        timeout=1700,
    )
    said = (done.stdout + done.stderr).decode(errors="replace")[-4000:]
    assert done.returncode == 0, said
    return path


@pytest.mark.long(seconds=200)
@pytest.mark.timeout(1800)
@pytest.mark.needs("tshark", "dumpcap", "unshare", rights=["network namespace"])
def test_wireshark_finds_nothing_wrong(capture: Path) -> None:
    wrong = shark.rows(
        capture,
        ["frame.number", "_ws.col.Info", "_ws.expert.message"],
        f"dcerpc && (_ws.malformed || _ws.expert.severity == error) && !{NO_LONGER_THERE}",
        OPTIONS,
    )
    assert wrong == []
    names = ["dcerpc.pkt_type", "dcerpc.auth_type", "dcerpc.auth_level", "ntlmssp.auth.username"]
    frames = shark.rows(capture, names, "dcerpc", OPTIONS)
    kinds, types, levels, users = (
        Counter(value for frame in frames for value in frame[name]) for name in names
    )
    assert kinds[BIND] >= kinds[BIND_ACK] > 150
    assert kinds[REQUEST] > 500
    assert kinds[RESPONSE] > 500
    assert kinds[FAULT] > 5
    assert set(types) == {"10"}
    assert {"2", "5", "6"} <= set(levels)
    assert set(users) >= {"alice", "mallory"}


@pytest.mark.long(seconds=5)
@pytest.mark.timeout(1800)
@pytest.mark.needs("tshark", "dumpcap", "unshare", rights=["network namespace"])
def test_what_wireshark_is_not_asked_about(capture: Path) -> None:
    """Only requests of those two methods without a stub; each is answered as they are: by an exception."""
    names = ["epm.opnum", "dcerpc.cn_frag_len", "dcerpc.cn_call_id", "tcp.stream", "dcerpc.pkt_type"]
    wrong = shark.rows(capture, names, "dcerpc && (_ws.malformed || _ws.expert.severity == error)", OPTIONS)
    assert {tuple(row["epm.opnum"]) for row in wrong} == {("0",), ("1",)}
    for row in wrong:
        assert (row["dcerpc.pkt_type"], row["dcerpc.cn_frag_len"]) == ([REQUEST], [HEADER])
        (stream,), (call,) = row["tcp.stream"], row["dcerpc.cn_call_id"]
        answered = f"dcerpc.pkt_type == 3 && tcp.stream == {stream} && dcerpc.cn_call_id == {call}"
        (fault,) = shark.rows(capture, ["dcerpc.cn_status"], answered, OPTIONS)
        assert [int(status, 0) for status in fault["dcerpc.cn_status"]] == [EPT_S_CANT_PERFORM_OP]


@pytest.mark.long(seconds=5)
@pytest.mark.timeout(1800)
@pytest.mark.needs("tshark", "dumpcap", "unshare", rights=["network namespace"])
def test_wireshark_reads_what_the_endpoint_mapper_tells(capture: Path) -> None:
    rows = shark.rows(
        capture,
        ["epm.uuid", "epm.proto.tcp_port", "epm.annotation", "epm.num_towers", "epm.rc"],
        "epm && dcerpc.pkt_type == 2",
        OPTIONS,
    )
    assert {
        "1a9134dd-7b39-45ba-ad88-44d01ca47f28",
        "fdb3a030-065f-11d1-bb9b-00a024ea5525",
        "76d12b80-3467-11d3-91ff-0090272f9ea3",
        "1088a980-eae5-11d0-8d9b-00a02453c337",
    } <= {uuid for row in rows if row["epm.proto.tcp_port"] for uuid in row["epm.uuid"]}
    annotations = {text for row in rows for text in row["epm.annotation"]}
    assert "Message Queuing - RemoteRead V1" in annotations
    nothing = [row for row in rows if row["epm.num_towers"] == ["0"]]
    assert nothing
    assert all("0x16c9a0d6" in row["epm.rc"] for row in nothing)
