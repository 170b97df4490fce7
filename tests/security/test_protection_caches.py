"""What a server's caches of keys and certificates drop, and which signatures it is told to believe."""

from __future__ import annotations

import pytest

from msmq_fast._native.framing import ParsedMessage
from msmq_fast.config.sections import Config, ProtectionConfig
from msmq_fast.directory.filters import equals
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.mqqb.reasons import Refusal
from msmq_fast.packet.protect import security_of
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.identity.keyring import KeyUse
from msmq_fast.qm.settings import DirectoryMode
from msmq_fast.security.algorithms import PROVIDERS, Provider, SignatureType
from msmq_fast.server.message_security import MessageSecurity
from tests.security.packets import SENDER, parsed
from tests.security.protection import CERTIFICATE, DESTINATION, KEYS, private, signed
from tests.support.worlds.hosts import Host
from tests.support.worlds.queue_manager import World


@pytest.mark.rule("QB-318", "QB-319", "QB-320", "QB-321")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_server_drops_what_its_caches_held_for_too_long(provider: Provider) -> None:
    world = World()
    own = world.manager.guid
    config = Config(protection=ProtectionConfig(key="5a" * 32))
    security = MessageSecurity(config, world.manager, world.clock.monotonic, lambda: None)
    world.finish(security.keyring.keep({(KeyUse.EXCHANGE, provider): KEYS[provider]}))
    world.finish(security.certificates.add(SENDER, CERTIFICATE, None))
    began = world.clock.seconds
    assert security.next_deadline() is None
    target = Host().queues["private$\\q"]

    def transmitted() -> ParsedMessage:
        packet = private(int(provider.level), source_machine=own)
        return parsed(security.sent.protect(packet, DESTINATION, own))

    def key_of(sent: ParsedMessage) -> bytes:
        found = security_of(sent)
        assert found is not None
        return found.encryption_key

    first = transmitted()
    assert security.next_deadline() == began + 600
    assert isinstance(security.turns.at_once(lambda: security.received.open(first, target)), bytes)
    assert isinstance(security.received.open(parsed(signed()), target), bytes)
    pairs = dict(security.keyring.exchange)
    security.keyring.exchange.clear()
    assert isinstance(security.received.open(first, target), bytes)  # the session key is still known
    world.clock.advance(599)
    security.expire(world.clock.monotonic())
    assert key_of(transmitted()) == key_of(first)
    assert isinstance(security.received.open(first, target), bytes)
    world.clock.advance(1)
    security.expire(world.clock.monotonic())
    assert security.received.open(first, target) is Refusal.UNSUPPORTED_PROVIDER
    security.keyring.exchange.update(pairs)
    assert key_of(transmitted()) != key_of(first)
    world.clock.advance(600)
    security.expire(world.clock.monotonic())
    assert security.next_deadline() is None


def test_a_cache_that_cannot_be_cleaned_holds_up_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(faults=Faults)
    config = Config(protection=ProtectionConfig(key="5a" * 32))
    security = MessageSecurity(config, world.manager, world.clock.monotonic, lambda: None)
    turns: list[float] = []
    monkeypatch.setattr(security._received, "expire", lambda now: 1 / 0)
    monkeypatch.setattr(security.turns, "expire", turns.append)
    security.expire(5.0)
    assert turns == [5.0]
    assert world.manager.faults.total == 1


def test_a_certificate_that_the_directory_loses_is_not_believed_any_more() -> None:
    world = World(directory=DirectoryMode.EMBEDDED)
    security = MessageSecurity(
        Config(protection=ProtectionConfig(key="5a" * 32)),
        world.manager,
        world.clock.monotonic,
        lambda: None,
    )
    world.finish(security.certificates.add(SENDER, CERTIFICATE, None))
    target = Host().queues["private$\\q"]
    assert isinstance(security.received.open(parsed(signed()), target), bytes)
    events = world.manager.directory.events
    user = world.finish(events.read(ObjectType.USER, (equals("SecurityIdentifier", str(SENDER)),)))
    world.finish(events.delete(user))
    assert security.received.open(parsed(signed()), target) is Refusal.SIGNED


def test_a_server_is_told_which_signatures_it_believes() -> None:
    world = World()
    config = Config(protection=ProtectionConfig(key="5a" * 32, accept_msmq1=False))
    security = MessageSecurity(config, world.manager, world.clock.monotonic, lambda: None)
    world.finish(security.certificates.add(SENDER, CERTIFICATE, None))
    target = Host().queues["private$\\q"]
    assert isinstance(security.received.open(parsed(signed()), target), bytes)
    assert security.received.open(parsed(signed(SignatureType.MSMQ_1)), target) is Refusal.SIGNED
