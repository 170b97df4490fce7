"""Names in the QUEUE_FORMAT of a caller: one set of rules decides, whatever text stands there."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.packet.names import NameKind
from msmq_fast.protocol.errors import IllegalFormatName
from msmq_fast.rpc.services.queueformat import name_of


def given_name(text: str, kind: NameKind = NameKind.DIRECT, suffix: int = 0) -> SimpleNamespace:
    return SimpleNamespace(m_qft=int(kind), m_SuffixAndFlags=suffix, name=text)


@pytest.mark.parametrize(
    "text",
    ["OS:h\ud800\\q", "TCP:fe80::1%\ud800\\q", "OS:h\\q\0more", "O\u017f:h\\q", "OS:h\u202e\\q"],
)
def test_hostile_names_are_illegal(text: str) -> None:
    with pytest.raises(IllegalFormatName):
        name_of(given_name(text))  # type: ignore[arg-type]


@given(
    st.sampled_from(["OS:", "TCP:fe80::1%", "HTTP://", ""]), st.text(st.characters()), st.sampled_from([0, 5])
)
def test_a_name_is_plain_or_illegal(head: str, text: str, suffix: int) -> None:
    kind = NameKind.SUBQUEUE if suffix else NameKind.DIRECT
    try:
        name = name_of(given_name(rf"{head}{text}\private$\q", kind, suffix))  # type: ignore[arg-type]
    except IllegalFormatName:
        return
    assert str(name).isascii()
    assert str(name).isprintable()
