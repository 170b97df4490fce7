"""The witness of the hostile tests: it is content with a server that is well."""

from __future__ import annotations

import time

from tests.faults.attacked import attacked


def test_a_server_that_is_well() -> None:
    with attacked() as scene:
        time.sleep(0.5)
        report = scene.check()
        print(report)
        assert report.sent.keys() == {"peer", "program", "newcomer"}
