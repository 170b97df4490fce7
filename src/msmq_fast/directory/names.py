"""Name operations that need the directory: Get Queue Path (3.1.7.1.26) and Expand Format Name (3.1.7.3.8)."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.directory.enumerations import failed
from msmq_fast.directory.events import DirectoryEvents
from msmq_fast.directory.filters import equals
from msmq_fast.directory.local import LocalObjects
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError
from msmq_fast.packet.names import (
    DirectName,
    FormatName,
    NameKind,
    Suffix,
    parse_format_name,
    parse_format_names,
)
from msmq_fast.protocol.errors import IllegalFormatName, MSMQError
from msmq_fast.store.completion import Completion

MAX_ELEMENTS = 10_000  # that a distribution list may stand for


@dataclass(frozen=True, slots=True)
class QueuePath:
    """The result of Get Queue Path: path name and computer of a queue. `path` is "" if only the computer is
    known.
    """

    path: str
    machine: str


def get_queue_path(text: str, events: DirectoryEvents, local: LocalObjects) -> Completion[QueuePath]:
    """Return path name and computer of the queue with this format name. Fails with ILLEGAL_FORMATNAME if the
    format name does not lead to a path name.
    """
    try:
        (name,) = parse_format_names(text)
    except MSMQError as error:
        return failed(IllegalFormatName(error.detail))
    except ValueError:
        return failed(IllegalFormatName(f"{text!r} names several queues"))
    tail = ";JOURNAL" if name.suffix is Suffix.JOURNAL else ""
    match name.kind:
        case NameKind.DIRECT | NameKind.SUBQUEUE if name.direct is not None:
            return Completion.of(_direct_path(name.direct))
        case NameKind.PUBLIC:
            return _public_path(name, tail, events)
        case NameKind.PRIVATE:
            return _private_path(name, tail, events, local)
        case _:
            return failed(IllegalFormatName(f"{name} has no path"))


def _direct_path(direct: DirectName) -> QueuePath:
    if direct.protocol in ("HTTP", "HTTPS"):
        return QueuePath("", direct.address)
    return QueuePath(f"{direct.address}\\{direct.part}", direct.address)


def _public_path(name: FormatName, tail: str, events: DirectoryEvents) -> Completion[QueuePath]:
    assert name.guid is not None  # noqa: S101 - of every public format name
    found = events.read(ObjectType.QUEUE, (equals(IDENTIFIER, name.guid),), ("Pathname",))

    def path(item: DirectoryObject) -> Completion[QueuePath]:
        text = str(item["Pathname"])
        return Completion.of(QueuePath(text + tail, text.partition("\\")[0]))

    return _or_illegal(found.then(path), name)


def _private_path(
    name: FormatName, tail: str, events: DirectoryEvents, local: LocalObjects
) -> Completion[QueuePath]:
    assert name.guid is not None  # noqa: S101 - of every private format name
    found = events.read(ObjectType.QUEUE_MANAGER, (equals(IDENTIFIER, name.guid),), ("ComputerName",))

    def path(item: DirectoryObject) -> Completion[QueuePath]:
        own = local.private_path(name.number) if item.identifier == local.guid else None
        return Completion.of(QueuePath("" if own is None else own + tail, item["ComputerName"]))

    return _or_illegal(found.then(path), name)


def _or_illegal(done: Completion[QueuePath], name: FormatName) -> Completion[QueuePath]:
    answer: Completion[QueuePath] = Completion()

    def pass_on(done: Completion[QueuePath]) -> None:
        error = done.exception()
        if error is None:
            answer.resolve(done.result())
        else:
            answer.fail(IllegalFormatName(f"{name}: {error}"))

    done.add_done_callback(pass_on)
    return answer


def expand_format_name(text: str, events: DirectoryEvents) -> Completion[str]:
    """Return the format names in `text`, with every distribution list replaced by its members. The result is
    sorted and has each name once.

    A list that contains itself is expanded once. Fails with ILLEGAL_FORMATNAME if a name is invalid, or a
    list is unknown, empty or too long. Raises what `parse_format_names` raises.
    """
    names = parse_format_names(text)
    if len(names) == 1 and names[0].kind is not NameKind.DL:
        return Completion.of(text)
    return _Expansion(events).run(list(names))


class _Expansion:
    """An `expand_format_name` in progress: the expansion of distribution lists into their members."""

    def __init__(self, events: DirectoryEvents) -> None:
        self._events = events
        self._seen: set[str] = set()
        self._found: dict[str, FormatName] = {}

    def run(self, left: list[FormatName]) -> Completion[str]:
        """Expand the names in `left`. If an answer of the provider is pending, continue when it arrives."""
        while left:
            if len(self._found) + len(left) > MAX_ELEMENTS:
                return failed(IllegalFormatName(f"the name expands to more than {MAX_ELEMENTS} queues"))
            name = left.pop()
            if name.kind is not NameKind.DL:
                self._found.setdefault(name.key, name)
                continue
            if name.key in self._seen:
                continue
            self._seen.add(name.key)
            assert name.guid is not None  # noqa: S101 - of every distribution list name
            members = self._events.provider.resolve_list(name.guid, name.text)
            if not members.done:
                return self._later(name, members, left)
            try:
                left.extend(_elements(name, members))
            except IllegalFormatName as error:
                return failed(error)
        if not self._found:
            return failed(IllegalFormatName("the distribution list is empty"))
        return Completion.of(",".join(str(self._found[key]) for key in sorted(self._found)))

    def _later(
        self, name: FormatName, members: Completion[tuple[str, ...]], left: list[FormatName]
    ) -> Completion[str]:
        answered: Completion[list[FormatName]] = Completion()

        def answer(members: Completion[tuple[str, ...]]) -> None:
            try:
                answered.resolve(_elements(name, members))
            except IllegalFormatName as error:
                answered.fail(error)

        members.add_done_callback(answer)
        return answered.then(lambda elements: self.run([*left, *elements]))


def _elements(name: FormatName, members: Completion[tuple[str, ...]]) -> list[FormatName]:
    """Returns the direct members of a distribution list. Raises ILLEGAL_FORMATNAME if a member is invalid."""
    try:
        return [parse_format_name(member) for member in members.result()]
    except (DirectoryError, MSMQError) as error:
        raise IllegalFormatName(f"{name}: {error}") from None
