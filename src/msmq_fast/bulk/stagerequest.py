"""The query of POST /stage: the part of a batch that the request uploads, and default values for its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from msmq_fast.bulk.fields import Fields
from msmq_fast.packet.malformed import Malformed
from msmq_fast.packet.text import utf16_units
from msmq_fast.protocol.columns import OLD_NAMES
from msmq_fast.qm.bulk.stages import Part

__all__ = ["StageRequest"]

_U32: Final = 0xFFFFFFFF
_NUMBERS: Final = {
    "priority": 7,
    "delivery": 1,
    "acknowledge": 15,
    "journal": 3,
    "app_specific": _U32,
    "body_type": _U32,
    "time_to_reach_queue": _U32,
    "time_to_be_received": _U32,
}
_TEXTS: Final = ("label", "response_queue", "admin_queue")
_MOST_LABEL: Final = 249  # characters


@dataclass(frozen=True, slots=True)
class StageRequest:
    """The parameters of POST /stage.

    - `queue`: the destination of rows that name no queue.
    - `transactional`: whether messages are sent in transactions. None leaves the choice to the queue: a queue
      of this computer requires or forbids transactions; for a queue of another computer, None means True.
    - `whole`: whether all rows form one transaction; otherwise each row is a transaction of its own.
    - `replay`: how the column message_id is used, see RowBuilder.
    - `strict`: whether an unknown column is an error.
    - `defaults`: the values, by column name, that replace missing or null ones.
    """

    part: Part
    queue: str
    transactional: bool | None
    whole: bool
    replay: str
    strict: bool
    defaults: dict[str, Any]

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> StageRequest:
        """Return the parameters in a query. Raises Refusal (BAD_REQUEST) or ValueError if one is invalid or
        unknown.
        """
        fields = Fields({OLD_NAMES.get(name, name): text for name, text in query.items()}, as_text=True)
        part = Part(
            fields.text("writer"), fields.number("batch"), fields.number("part"), fields.number("attempt", 0)
        )
        part.check()
        kinds = {"auto": None, "true": True, "false": False}
        defaults: dict[str, Any] = {
            name: fields.number(name, high=high) for name, high in _NUMBERS.items() if name in fields
        }
        defaults |= {name: fields.text(name) for name in _TEXTS if name in fields}
        if utf16_units(defaults.get("label", "")) > _MOST_LABEL:
            raise Malformed(f"the label has more than {_MOST_LABEL} characters")
        request = cls(
            part,
            fields.text("queue", "", empty=True),
            kinds[fields.choice("transactional", kinds, "auto")],
            fields.choice("transaction", ("row", "stage"), "row") == "stage",
            fields.choice("message_id", ("extension", "keep", "ignore"), "extension"),
            fields.choice("unknown", ("error", "ignore"), "error") == "error",
            defaults,
        )
        fields.done()
        return request
