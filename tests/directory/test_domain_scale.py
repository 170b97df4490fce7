"""A domain with many queues: what the copy of it costs, on a small scale; `bench.domain` has the bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.domain import LOOKUP_US, measure
from msmq_fast.config.sections.directory import DirectoryConfig
from tests.support.processes.domain import NEEDS, controller
from tests.support.processes.samba import DOMAIN, DomainController

__all__ = ["controller"]

pytestmark = [*NEEDS, pytest.mark.long(seconds=120), pytest.mark.timeout(600)]

QUEUES = 2_000


def test_the_copy_is_small_and_holds_nothing_up(controller: DomainController, tmp_path: Path) -> None:
    controller.computer("BENCH")
    lines = [f"dn: CN=msmq,{controller.computer('BULK')}\nchangetype: add\nobjectClass: mSMQConfiguration\n"]
    lines += [
        f"dn: CN=orders-{number},CN=msmq,CN=BULK,CN=Computers,{DOMAIN}\nchangetype: add\n"
        f"objectClass: mSMQQueue\nmSMQLabelEx: Orders of branch {number}\nmSMQQueueQuota: {number}\n"
        for number in range(QUEUES)
    ]
    controller.ldif("\n".join(lines), timeout=300)
    config = DirectoryConfig(
        mode="domain",
        url=(controller.url,),
        user=controller.administrator,
        password_file=controller.password_file,
        ca_file=controller.ca_file,
    )
    outcome = measure(config, tmp_path, readings=1)
    print(outcome)  # the times of messages say more about a machine with other work than about the reading
    assert outcome.objects >= QUEUES
    assert outcome.lookup_us < LOOKUP_US
    assert outcome.memory_mib < 5 + QUEUES * 1.6 / 1024  # what 100,000 queues may need, and the connection
    assert outcome.messages > 0
