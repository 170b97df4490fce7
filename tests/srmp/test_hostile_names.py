"""Hostile names in every name field of a message over HTTP, whatever becomes of it; the counterpart of
`tests/mqqb/test_hostile_names.py`.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

import pytest

from msmq_fast.packet.names import parse_format_name
from msmq_fast.qm.faults import Faults
from tests.support.clocks import WALL
from tests.support.srmp.station import Station, envelope, services, stream

BASE = "http://host/msmq/private$/"
GOOD = BASE + "in"
NAMES = {
    "surrogate": "http://host/msmq/private$/in&#xD800;",
    "surrogate bytes": "http://host/msmq/private$/in%ED%A0%80",
    "NUL": "http://host/msmq/private$/in%00",
    "NUL behind": "http://host/msmq/private$/in%00more",
    "control characters": "http://host/msmq/private$/in%1b%5b2J%07",
    "lines": "http://host/msmq/private$/in%0d%0aERROR%20all",
    "right to left": "http://host/msmq/private$/in\u202e",
    "letters that fold": "http://h\u017f/m\u017fmq/private$/in",
    "not ASCII": "http://m\u00fcller/msmq/private$/in",
    "spaces": " http://ho st/msmq/private$/in ",
    "comma": "http://a,b/msmq/private$/in",
    "32 K host": "http://" + "h" * 32_700 + "/msmq/private$/in",
    "32 K queue": BASE + "q" * 32_700,
    "label of 200": "http://" + "h" * 200 + "/msmq/private$/in",
    "zone": "http://[fe80::1%eth0]/msmq/private$/in",
    "text as zone": "http://[fe80::1%a b]/msmq/private$/in",
    "nothing": "",
    "no queue": "http://host/",
    "traversal": "http://host/msmq/../private$/in",
    "markup": "http://host/msmq/<a>&amp;</a>",
    "direct": "MSMQ:DIRECT=OS:h\x7f\\private$\\in",
    "direct with a zone": "MSMQ:DIRECT=TCP:fe80::1%a b<c>\\private$\\in",
}
FIELDS = ("to", "via", "delivery", "commitment", "receipts", "admin", "response", "list")
FATES = ("expired", "undeliverable", "delivered", "purged")


def target(field: str) -> str:
    return BASE + "stream" if field == "receipts" else GOOD


def cell(field: str, name: str, fate: str, number: int, now: int) -> str:
    """The envelope of one cell of the matrix."""
    name = name if "&" in name else escape(name)
    to = BASE + "none" if fate == "undeliverable" else target(field)
    headers = ""
    if field == "receipts":
        headers = stream(number, 1, to=name)
    elif field in ("delivery", "commitment"):
        headers = services(**{field: name})
    listed = {"admin": "AdminMqf", "response": "ResponseMqf", "list": "DestinationMqf"}.get(field)
    text = envelope(
        name if field == "to" else to,
        ordinal=number,
        headers=headers,
        now=now,
        reach=-10 if fate == "expired" else 1000,
    )
    if listed is not None:
        text = text.replace("<TTrq>", f"<{listed}>{name} {GOOD}</{listed}><TTrq>")
    if field == "via":
        text = text.replace("</path>", f"<rev><via>{name}</via></rev></path>")
    return text


@pytest.mark.parametrize("field", FIELDS)
def test_the_rest_goes_on_beside_every_hostile_name(field: str) -> None:
    world = Station(faults=Faults, transaction_idle=30)
    queue, ordered = world.make(), world.make("stream", transactional=True)
    number = 0
    for fate in FATES:
        for name in NAMES.values():
            number += 1
            status = world.post(cell(field, name, fate, number, WALL), b"x")
            assert status != 500, (fate, name[:60])
            if fate == "purged":
                world.manager.purge(queue)
                world.manager.purge(ordered)
            world.run()
    assert world.manager.faults.counts == {}
    assert world.post(cell(field, GOOD, "delivered", 8_000, WALL), b"good") in (200, 202), "a good name"
    assert b"good" in world.taken() + world.taken("stream")
    world.manager.purge(queue)
    world.run()
    # Messages flow, a deadline fires, a newcomer's stream is acknowledged.
    transaction = world.manager.transactions.begin()
    world.send(b"short", "in", time_to_be_received=5, sent_time=WALL)
    world.advance(31)
    assert transaction.state.name == "GONE"
    assert b"short" not in world.taken()
    assert world.post(envelope(GOOD, ordinal=9_000, now=WALL + 31), b"flows") in (200, 202)
    assert b"flows" in world.taken()
    for found in world.manager.outgoing():
        assert parse_format_name(found.name) == found.destination
        assert found.name.isprintable()
    before = {each.name for each in world.manager.queues()}
    world.manager.stop()
    world.run()
    world.crash()
    assert {each.name for each in world.manager.queues()} == before
    assert not world.manager.damage
