"""The queues that the configuration declares: creates those that are missing, and updates the properties of
existing ones.
"""

from __future__ import annotations

from typing import Any

from msmq_fast.config.sections import QueueDeclaration
from msmq_fast.protocol.errors import MSMQError, QueueNotFound
from msmq_fast.qm.manager import QueueManager

__all__ = ["DeclarationError", "check", "declare"]


class DeclarationError(Exception):
    """A declared queue, file or key of the configuration cannot be used; the text is one line for people."""


def declare(manager: QueueManager, declarations: list[QueueDeclaration]) -> None:
    """Create or update every declared queue; the changes are durable with the next commit. Raises
    DeclarationError; if the reason is a stored queue with another value of a fixed property, nothing has
    changed.
    """
    check(manager, declarations)
    for declaration in declarations:
        try:
            _declare(manager, declaration)
        except MSMQError as error:
            raise DeclarationError(f'queue "{declaration.name}": {error}') from None


def check(manager: QueueManager, declarations: list[QueueDeclaration]) -> None:
    """Compare the declarations with the stored queues. Raises DeclarationError if a queue differs from its
    declaration in a fixed property.
    """
    for declaration in declarations:
        try:
            transactional = manager.find(declaration.name).properties.transactional
        except QueueNotFound:
            continue
        except MSMQError as error:
            raise DeclarationError(f'queue "{declaration.name}": {error}') from None
        if transactional != declaration.transactional:
            kind = "transactional" if transactional else "not transactional"
            raise DeclarationError(f'queue "{declaration.name}" exists and is {kind}; this cannot be changed')


def _declare(manager: QueueManager, declaration: QueueDeclaration) -> None:
    wanted: dict[str, Any] = {
        "label": declaration.label,
        "journaling": declaration.journal,
        "quota_kb": declaration.quota,
        "authenticated": declaration.authenticated,
    }
    if declaration.multicast_address:
        wanted["multicast_address"] = declaration.multicast_address
    try:
        queue = manager.find(declaration.name)
    except QueueNotFound:
        created = manager.create_queue(declaration.name, transactional=declaration.transactional, **wanted)
        error = created.exception()
        if error is not None:
            raise error from None
        return
    changed = {name: value for name, value in wanted.items() if getattr(queue.properties, name) != value}
    if changed:
        manager.set_properties(queue, **changed)
