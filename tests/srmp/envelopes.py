"""Any envelope that conforms, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from msmq_fast.srmp.model import (
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    Eod,
    MsmqPart,
    Provider,
    StreamPart,
    StreamReceipt,
)

U32 = st.integers(0, 0xFFFFFFFF)
U64 = st.integers(0, 0xFFFFFFFFFFFFFFFF)
DATES = st.integers(0, 0x7FFFFFFF)
GUIDS = st.uuids()
TEXT = st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff")
LABELS = st.text(TEXT | st.sampled_from("\r\n\t<>&\"'"), max_size=30)
URLS = st.sampled_from(["http://h/msmq/q", "https://h:8443/msmq/private$/q?a=b&c=<d>", "http://é/msmq/q"])
IDS = st.builds("uuid:{}@{}".format, U32, GUIDS)


def maybe(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | strategy


def _names() -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(URLS, max_size=3).map(tuple)


MSMQ = st.builds(
    MsmqPart,
    source_qm=GUIDS,
    ttrq=DATES,
    message_class=st.integers(0, 0xFFFF),
    priority=st.integers(0, 7),
    journal=st.booleans(),
    deadletter=st.booleans(),
    correlation=maybe(st.binary(min_size=20, max_size=20)),
    trace=st.booleans(),
    connector_type=maybe(GUIDS),
    app=maybe(U32),
    body_type=U32,
    hash_algorithm=maybe(U32),
    eod=maybe(st.builds(Eod, st.booleans(), st.booleans(), maybe(GUIDS))),
    provider=maybe(st.builds(Provider, U32, st.text(TEXT, max_size=9).map(str.strip))),
    destination_mqf=_names(),
    admin_mqf=_names(),
    response_mqf=_names(),
)


@st.composite
def streams(draw: st.DrawFn) -> StreamPart:
    current = draw(st.just(1) | st.integers(1, 0xFFFFFFFF))
    return StreamPart(
        sender=draw(GUIDS),
        sequence=draw(U64),
        current=current,
        previous=draw(st.none() | U32),
        receipts_to=draw(URLS) if current == 1 else None,
        start=current == 1,
    )


@st.composite
def envelopes(draw: st.DrawFn) -> Envelope:
    """Whatever may be read; not all of it is what a sender writes."""
    msmq = draw(maybe(MSMQ))
    services = draw(st.booleans())
    commitment_to = draw(maybe(URLS)) if services else None
    return Envelope(
        action="MSMQ:" + draw(LABELS),
        to=draw(URLS | st.just("MSMQ:MULTICAST=234.1.1.1:8001")),
        id=draw(IDS),
        expires_at=draw(DATES),
        sent_at=draw(maybe(DATES)),
        via=draw(maybe(URLS | st.just("MSMQ:DIRECT=OS:h\\private$\\q"))),
        services=services,
        durable=services and draw(st.booleans()),
        delivery_to=draw(maybe(URLS)) if services else None,
        commitment_to=commitment_to,
        positive_only=commitment_to is not None and draw(st.booleans()),
        negative_only=commitment_to is not None and draw(st.booleans()),
        stream=draw(maybe(streams())) if msmq is not None else None,
        delivery_receipt=draw(maybe(st.builds(DeliveryReceipt, DATES, IDS))),
        commitment_receipt=draw(maybe(st.builds(CommitmentReceipt, DATES, st.booleans(), IDS))),
        stream_receipt=draw(maybe(st.builds(StreamReceipt, GUIDS, U64, U32))),
        msmq=msmq,
    )
