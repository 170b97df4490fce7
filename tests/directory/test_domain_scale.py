"""A domain with 100,000 queues: what its copy costs a server, by the measurements of `bench.domain`."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bench.domain import DELAY_S, FILL_S, LOOKUP_US, MEMORY_MIB, domain_config, domain_of_queues, measure
from msmq_fast.directory.ldap.schema import wanted_attributes
from msmq_fast.directory.objecttypes import ObjectType
from tests.support.processes.bulkqueues import PYTHON
from tests.support.processes.domain import ADDRESS, NEEDS

pytestmark = [
    pytest.mark.timeout(3_600),  # of two such marks, the first counts
    *NEEDS,
    pytest.mark.needs(PYTHON),
    pytest.mark.long(seconds=820),
]

QUEUES = 100_000
NOISE = 4.0
"""The bench wants 1.2, on a machine without other work. At a load average of 12 on two cores, a pair of
windows had 0.7: p99 of 12.8 ms without, 9.0 ms with a reading. There, other work costs more than the reading.
"""


def test_100_000_queues(tmp_path: Path) -> None:
    with domain_of_queues(tmp_path / "dc", ADDRESS, QUEUES) as controller:
        begun = time.monotonic()
        found = controller.search(
            "(objectClass=mSMQQueue)", *wanted_attributes(ObjectType.QUEUE), timeout=600
        )
        plain_s = time.monotonic() - begun  # what ldapsearch needs for the same entries on this machine now
        assert len(found) == QUEUES
        outcome = measure(domain_config(controller), tmp_path, readings=1)
    print(outcome, plain_s)
    assert outcome.objects >= QUEUES
    assert outcome.fill_s < max(FILL_S, 2 * plain_s)
    assert outcome.delay_s < max(DELAY_S, outcome.plain_ready_s)  # a start is as long as other work makes it
    assert outcome.memory_mib < MEMORY_MIB
    assert outcome.lookup_us < LOOKUP_US
    assert outcome.ratio < NOISE
