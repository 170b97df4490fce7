"""Which requests the console refuses before it looks at anything else."""

from __future__ import annotations

import pytest

from msmq_fast.console.guard import HEADERS, is_forged, is_known_host

NAMES = ("mq1", "mq1.example.com")


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:1802",
        "127.0.0.1:1802",
        "[::1]:1802",
        "10.0.0.7:1802",
        "MQ1",
        "mq1.example.com:1",
    ],
)
def test_own_names_and_addresses_are_known(host: str) -> None:
    assert is_known_host(host, NAMES)


@pytest.mark.parametrize(
    "host", ["", "evil.example", "mq1.evil.example", "127.0.0.1.evil.example", "[::1", "a b"]
)
def test_other_names_are_not_known(host: str) -> None:
    assert not is_known_host(host, NAMES)


CASES = [
    ("GET", {}, False),
    ("HEAD", {"Sec-Fetch-Site": "cross-site"}, False),
    ("POST", {"Sec-Fetch-Site": "same-origin"}, False),
    ("POST", {"Sec-Fetch-Site": "none"}, False),
    ("POST", {"Sec-Fetch-Site": "same-site"}, True),
    ("POST", {"Sec-Fetch-Site": "cross-site"}, True),
    ("POST", {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost:1802"}, True),
    ("POST", {"Origin": "http://localhost:1802"}, False),
    ("POST", {"Origin": "https://localhost:1802"}, False),
    ("POST", {"Origin": "http://localhost:1803"}, True),
    ("POST", {"Origin": "http://evil.example"}, True),
    ("POST", {"Origin": "null"}, True),
    ("POST", {"Origin": "http://[::1"}, True),
    ("POST", {}, True),
    ("DELETE", {}, True),
]


@pytest.mark.parametrize(("method", "headers", "forged"), CASES)
def test_requests_of_other_sites_are_recognised(method: str, headers: dict[str, str], forged: bool) -> None:
    assert is_forged(method, {"Host": "localhost:1802", **headers}) is forged


def test_the_policy_allows_own_files_only() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
