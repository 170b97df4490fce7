"""Checks of keys that depend on each other."""

from __future__ import annotations

from collections import Counter

from msmq_fast.config import kinds
from msmq_fast.config.mistakes import Mistake
from msmq_fast.config.sections import Config

__all__ = ["check_together"]


def check_together(config: Config) -> list[Mistake]:
    """Return what is wrong with keys that depend on each other."""
    mistakes: list[Mistake] = []
    server = config.server
    if (server.https_certificate is None) != (server.https_key is None):
        mistakes.append(
            Mistake(config.source, None, "server.https_certificate and server.https_key go together")
        )
    if server.https_certificate is None and not isinstance(server.https_port, kinds.Preferred | None):
        mistakes.append(
            Mistake(config.source, None, "server.https_port needs https_certificate and https_key")
        )
    if config.rpc.qm2qm and not config.rpc.qmcomm:
        mistakes.append(
            Mistake(config.source, None, "rpc.qm2qm needs rpc.qmcomm: its callers open queues there")
        )
    for name in ("app", "admin"):
        certificate, key = f"{name}_tls_certificate", f"{name}_tls_key"
        if (getattr(server, certificate) is None) != (getattr(server, key) is None):
            mistakes.append(
                Mistake(config.source, None, f"server.{certificate} and server.{key} go together")
            )
    if server.app_port is not None and not config.users:
        mistakes.append(
            Mistake(config.source, None, "server.app_port needs at least one [[users]] entry with a token")
        )
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
