"""Sources and receivers over a network that loses, doubles and reorders: all arrives in order."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msmq_fast.srmp.pgm.settings import PgmSettings
from tests.srmp.pgm.network import Network, Weather


def apdus(random: Random, count: int, largest: int) -> list[bytes]:
    return [b"%08d" % number + random.randbytes(random.randrange(largest)) for number in range(count)]


def converse(
    seed: int,
    weather: Weather,
    *,
    count: int = 100,
    largest: int = 4000,
    rate: float = 1e6,
    sources: int = 1,
    receivers: int = 1,
    first: int | None = None,
) -> Network:
    """All hear the opening of the sessions; then every APDU arrives at every receiver, once and in order."""
    retries = 10 if weather.lost <= 0.1 else 300  # ten are not enough for so bad a network
    pgm = PgmSettings(max_rate=rate, nak_ncf_retries=retries, nak_data_retries=retries)
    network = Network(seed, Weather(lost=0), pgm, sources=sources, receivers=receivers, first=first)
    network.run(0.1)
    network.weather = weather
    sent: list[list[bytes]] = []
    for source in network.sources.values():
        sent.append(apdus(network.random, count, largest))
        for apdu in sent[-1]:
            source.send(apdu)
    for _ in range(300):
        network.run(1)
        if all(
            len(network.of(receiver, source)) >= count
            for receiver in range(1, receivers + 1)
            for source in range(1, sources + 1)
        ):
            break
    for receiver in range(1, receivers + 1):
        for source in range(1, sources + 1):
            assert network.of(receiver, source) == sent[source - 1], (seed, receiver, source)
    assert all(one.statistics.lost == 0 for one in network.receivers.values())
    assert list(network.finished.values()) == [count] * sources
    for source in network.sources.values():
        source.close(network.now)
    for _ in range(40):
        network.run(10)
    assert all(source.closed for source in network.sources.values())
    assert all(len(receiver) == 0 for receiver in network.receivers.values())
    return network


@pytest.mark.rule("SR-009", "SR-023")
@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_and_nothing_out_of_order(seed: int) -> None:
    random = Random(seed)
    weather = Weather(
        lost=random.choice([0.0, 0.05, 0.2, 0.3]),
        doubled=random.choice([0.0, 0.1]),
        most_delay=random.choice([0.001, 0.02, 0.3]),
    )
    converse(seed, weather, sources=random.choice([1, 2]), receivers=random.choice([1, 3]), count=60)


@given(st.integers(0, 1 << 30), st.floats(0, 0.35), st.floats(0, 0.5), st.integers(0xFFFF_FFC0, 0xFFFF_FFFF))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_seed_and_a_sequence_that_wraps(seed: int, lost: float, delay: float, first: int) -> None:
    converse(seed, Weather(lost=lost, most_delay=0.001 + delay), count=40, first=first)


@pytest.mark.long(seconds=150)
@pytest.mark.timeout(900)
def test_many_seeds() -> None:
    for seed in range(150):
        random = Random(seed)
        weather = Weather(
            lost=random.uniform(0, 0.35),
            doubled=random.uniform(0, 0.3),
            most_delay=random.uniform(0.001, 1.0),
        )
        converse(
            seed,
            weather,
            sources=random.choice([1, 1, 2]),
            receivers=random.choice([1, 1, 3]),
            largest=random.choice([100, 3000, 30_000]),
            first=random.choice([None, 0xFFFF_FFF0]),
        )


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(600)
@pytest.mark.rule("SR-023")
def test_5_percent_of_100_000_messages_are_lost_on_the_way_and_all_arrive() -> None:
    settings = PgmSettings(max_rate=5e6)
    network = Network(1, Weather(lost=0), settings)
    network.run(0.1)
    network.weather = Weather()
    source = network.sources["192.0.2.1"]
    sent = 0
    while len(network.of(1)) < 100_000:
        while sent < 100_000 and source.backlog < 500_000:
            source.send(b"%08d" % sent + bytes(1000))
            sent += 1
        network.run(0.05)
        assert network.now < 300
    assert [int(apdu[:8]) for apdu in network.of(1)] == list(range(100_000))
    assert source.statistics.rdata > 4000


@pytest.mark.parametrize("seed", range(3))
def test_a_receiver_that_was_away_for_longer_than_the_window_goes_on_behind_it(seed: int) -> None:
    network = Network(seed, Weather(lost=0), PgmSettings(max_rate=1e6, window_seconds=10))
    network.run(0.1)
    network.weather = Weather()
    source = network.sources["192.0.2.1"]
    for number in range(60):
        if number == 10:
            network.deaf.add("192.0.3.1")
        if number == 40:
            network.deaf.discard("192.0.3.1")
        source.send(b"%d" % number + b" " * 3000)
        network.run(1)
    network.run(20)
    numbers = [int(apdu) for apdu in network.of(1)]
    assert numbers[:10] == list(range(10))
    assert numbers == sorted(set(numbers))
    assert numbers[-25:] == list(range(35, 60))  # what the window still had, and all that followed
    counted = network.receivers["192.0.3.1"].statistics
    assert counted.lost > 0
    assert counted.restarts >= 1


def test_who_joins_later_hears_what_follows() -> None:
    network = Network(1, Weather(lost=0.1), PgmSettings(max_rate=1e6), receivers=2)
    network.deaf.add("192.0.3.2")
    source = network.sources["192.0.2.1"]
    for number in range(200):
        if number == 100:
            network.deaf.discard("192.0.3.2")
        source.send(b"%d" % number + b" " * 3000)
        network.run(0.02)
    network.run(40)
    numbers = [int(apdu) for apdu in network.of(2)]
    assert numbers == list(range(numbers[0], 200))
    assert 99 <= numbers[0] <= 103
    assert [int(apdu) for apdu in network.of(1)] == list(range(200))
