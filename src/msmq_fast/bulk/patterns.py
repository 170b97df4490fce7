r"""Patterns of queue names: regular expressions from clients, which must not keep the server busy.

Python's own matcher backtracks, and a hostile pattern can make it run for years. This matcher follows all
alternatives at once: its time is bounded by the size of the pattern times the length of the name. It supports
what patterns of names need: characters, `.`, classes (`[a-z]`, `\d`), groups, `|`, and the repetitions `*`,
`+`, `?`, `{m,n}`. Case does not matter, and the whole name has to match.
"""

from __future__ import annotations

import re
from typing import Final

from msmq_fast.packet.malformed import Malformed

__all__ = ["NamePattern"]

MAX_LENGTH: Final = 1024
MAX_STATES: Final = 1024
MAX_DEPTH: Final = 40
_MAX_KNOWN: Final = 10_000  # steps that are remembered
_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_BRACES: Final = re.compile(r"\{([0-9]{1,4})(?:(,)([0-9]{0,4}))?\}")

_Node = tuple[object, ...]  # ("one", pattern) ("all", nodes) ("any", nodes) ("times", node, least, most)


class NamePattern:
    """A compiled pattern: `NamePattern(text).matches(name)`. The constructor raises ValueError with one line
    for the client if the pattern is invalid or too large.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise Malformed(f"the pattern has {len(text)} characters; the limit is {MAX_LENGTH}")
        self.text = text
        self._free: list[list[int]] = [[]]  # where each state leads without a character
        self._tests: list[tuple[re.Pattern[str], int] | None] = [None]  # and where with one
        self._end = self._add(_Parser(text).parse(), 0)
        self._start = self._closure({0})
        self._steps: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def matches(self, name: str) -> bool:
        """Return whether the whole of `name` matches."""
        active = self._start
        for character in name:
            following = self._steps.get((active, character))
            if following is None:
                tests = [self._tests[state] for state in active]
                found = {test[1] for test in tests if test is not None and test[0].fullmatch(character)}
                following = self._closure(found)
                if len(self._steps) < _MAX_KNOWN:
                    self._steps[active, character] = following
            active = following
        return self._end in active

    def _closure(self, found: set[int]) -> frozenset[int]:
        waiting = list(found)
        while waiting:
            for onward in self._free[waiting.pop()]:
                if onward not in found:
                    found.add(onward)
                    waiting.append(onward)
        return frozenset(found)

    def _state(self, *sources: int) -> int:
        if len(self._free) >= MAX_STATES:
            raise Malformed(f"the pattern {self.text!r} is too large: use fewer or smaller repetitions")
        self._free.append([])
        self._tests.append(None)
        for source in sources:
            self._free[source].append(len(self._free) - 1)
        return len(self._free) - 1

    def _add(self, node: _Node, state: int) -> int:
        """Add the states that match a node after `state`; return the state that is reached at the end of the
        node.
        """
        match node:
            case ("one", re.Pattern() as pattern):
                start, end = self._state(state), self._state()
                self._tests[start] = (pattern, end)
                return end
            case ("all", list(parts)):
                for part in parts:
                    state = self._add(part, state)
                return state
            case ("any", list(parts)):
                return self._state(*(self._add(part, self._state(state)) for part in parts))
            case ("times", tuple(part), int(least), most):
                for _ in range(least):  # a state each, also for nothing: that bounds it
                    state = self._add(part, self._state(state))
                if most is None:
                    loop = self._state(state)
                    self._free[self._add(part, loop)].append(loop)
                    return self._state(loop)
                ends = [state]
                for _ in range(int(str(most)) - least):
                    ends.append(self._add(part, self._state(ends[-1])))
                return self._state(*ends)
        raise AssertionError(node)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def parse(self) -> _Node:
        """Parse the whole text. Raises ValueError."""
        if self._text.startswith("^"):
            self._at = 1
        node = self._alternatives()
        if self._at < len(self._text):
            raise self._wrong("unmatched )")
        return node

    def _wrong(self, what: str) -> Malformed:
        return Malformed(f"{self._text!r} is not a pattern for names: {what} at position {self._at}")

    def _alternatives(self) -> _Node:
        parts = [self._sequence()]
        while self._text.startswith("|", self._at):
            self._at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else ("any", parts)

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if self._text[self._at :] == "$":
                self._at += 1
            else:
                parts.append(self._repeated(self._atom()))
        return ("all", parts)

    def _repeated(self, node: _Node) -> _Node:
        ahead = self._text[self._at : self._at + 1]
        braces = _BRACES.match(self._text, self._at)
        if braces is not None:
            least = int(braces[1])
            most = least if braces[2] is None else int(braces[3]) if braces[3] else None
            if most is not None and most < least:
                raise self._wrong("the maximum of a repetition is below its minimum")
            self._at = braces.end()
            node = ("times", node, least, most)
        elif ahead and ahead in "*+?":
            self._at += 1
            node = ("times", node, int(ahead == "+"), 1 if ahead == "?" else None)
        else:
            return node
        if self._text[self._at : self._at + 1] == "?":
            self._at += 1  # as few as possible: no difference where the whole has to match
        return node

    def _atom(self) -> _Node:
        first = self._text[self._at]
        if first == "(":
            return self._group()
        if first in "*+?{":
            raise self._wrong("nothing to repeat")
        if first in "^$":
            raise self._wrong(f"a {first} that can never match (write \\{first} for the character)")
        found = _CLASS.match(self._text, self._at) if first == "[" else None
        end = found.end() if found else self._at + (2 if first == "\\" else 1)
        atom = self._text[self._at : end]
        if re.fullmatch(r"\\[1-9bBAZ]", atom):
            raise self._wrong(f"{atom} cannot be used (write \\\\ for a backslash)")
        try:
            pattern = re.compile(atom, re.IGNORECASE | re.DOTALL)
        except re.error as error:
            raise self._wrong(error.msg) from None
        self._at = end
        return ("one", pattern)

    def _group(self) -> _Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._wrong("groups are nested too deeply")
        self._at += 1
        if self._text.startswith("?:", self._at):
            self._at += 2
        elif self._text.startswith("?", self._at):
            raise self._wrong("an unsupported kind of group: use (…) or (?:…)")
        node = self._alternatives()
        if self._at >= len(self._text):
            raise self._wrong("unmatched (")
        self._at += 1
        self._depth -= 1
        return node
