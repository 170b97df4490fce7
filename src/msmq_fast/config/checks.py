"""Checks of keys that depend on each other."""

from __future__ import annotations

from collections import Counter

from msmq_fast.config import kinds
from msmq_fast.config.mistakes import Mistake
from msmq_fast.config.sections import Config

__all__ = ["check_together"]


def check_together(config: Config) -> list[Mistake]:
    """Return the mistakes in keys that depend on each other."""
    mistakes: list[Mistake] = []
    listen = config.listen
    for name, listener in (("app", listen.app), ("admin", listen.admin), ("https", listen.https)):
        if (listener.tls_certificate is None) != (listener.tls_key is None):
            both = f"listen.{name}.tls_certificate and listen.{name}.tls_key"
            mistakes.append(Mistake(config.source, None, f"{both} must be set together"))
    if listen.https.tls_certificate is None and not isinstance(listen.https.port, kinds.Preferred | None):
        mistakes.append(
            Mistake(
                config.source,
                None,
                "listen.https.port needs listen.https.tls_certificate and listen.https.tls_key",
            )
        )
    if config.rpc.qm2qm and not config.rpc.qmcomm:
        mistakes.append(
            Mistake(config.source, None, "rpc.qm2qm needs rpc.qmcomm, with which its callers open queues")
        )
    if config.backup.every and not config.backup.url:
        mistakes.append(Mistake(config.source, None, "backup.every needs backup.url"))
    for name, value, least in (("every", config.backup.every, 60), ("rate", config.backup.rate, 65536)):
        if 0 < value < least:
            mistakes.append(Mistake(config.source, None, f"backup.{name} must be 0, or {least} or more"))
    mistakes.extend(
        Mistake(config.source, None, f'user "{user.name}": give one of token, token_file and token_sha256')
        for user in config.users
        if [bool(user.token), user.token_file is not None, bool(user.token_sha256)].count(True) != 1
    )
    _check_unique("[[queues]]", [queue.name.lower() for queue in config.queues], config, mistakes)
    _check_unique("[[users]]", [user.name for user in config.users], config, mistakes)
    destinations = [route.destination.casefold() for route in config.routes]
    _check_unique("[[routes]]", destinations, config, mistakes)
    _check_unique("[[peers]]", [peer.guid.casefold() for peer in config.peers], config, mistakes)
    return mistakes


def _check_unique(what: str, names: list[str], config: Config, mistakes: list[Mistake]) -> None:
    mistakes.extend(
        Mistake(config.source, None, f'{what} "{name}" is declared twice')
        for name, count in sorted(Counter(names).items())
        if count > 1
    )
