"""The Msmq element of an envelope that arrives: defaults, what it must and may have."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast.srmp.model import Eod, Provider
from msmq_fast.srmp.reading import read_envelope
from tests.srmp.reading import read, refused
from tests.support.srmp.texts import GUID, OTHER, URL, envelope, full, msmq, path, properties


@pytest.mark.rule("SR-080")
def test_without_msmq_there_are_defaults() -> None:
    found = read_envelope(envelope())
    assert (found.msmq, found.message_class, found.identifier) == (None, 0, (UUID(int=0), 1))


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param("Class", marks=pytest.mark.rule("SR-081")),
        pytest.param("Priority", marks=pytest.mark.rule("SR-082")),
        pytest.param("BodyType", marks=pytest.mark.rule("SR-088")),
        pytest.param("SourceQmGuid", marks=pytest.mark.rule("SR-092")),
        pytest.param("TTrq", marks=pytest.mark.rule("SR-094")),
    ],
)
def test_what_msmq_must_have(missing: str) -> None:
    refused(envelope(path(), properties(), msmq(**{missing: None})), f"{missing} is missing")
    refused(envelope(path(), properties(), msmq(**{missing: ""})))
    refused(envelope(path(), properties(), msmq(**{missing: "?"})))


@pytest.mark.parametrize(
    ("element", "attribute", "value"),
    [
        pytest.param("<Journal/>", "journal", True, marks=pytest.mark.rule("SR-083")),
        pytest.param("<DeadLetter></DeadLetter>", "deadletter", True, marks=pytest.mark.rule("SR-083")),
        pytest.param(
            "<Correlation>AAAAAAAAAAAAAAAAAAAAAAEAAAA=</Correlation>",
            "correlation",
            bytes(16) + b"\1\0\0\0",
            marks=pytest.mark.rule("SR-084"),
        ),
        pytest.param("<Trace/>", "trace", True, marks=pytest.mark.rule("SR-085")),
        pytest.param(
            f"<ConnectorType>{OTHER}</ConnectorType>", "connector_type", UUID(OTHER),
            marks=pytest.mark.rule("SR-086"),
        ),
        pytest.param("<App>36</App>", "app", 36, marks=pytest.mark.rule("SR-087")),
        pytest.param(
            "<HashAlgorithm>32772</HashAlgorithm>", "hash_algorithm", 0x8004, marks=pytest.mark.rule("SR-089")
        ),
        pytest.param("<Eod/>", "eod", Eod(), marks=pytest.mark.rule("SR-090")),
        pytest.param("<Eod><First/></Eod>", "eod", Eod(first=True), marks=pytest.mark.rule("SR-090")),
        pytest.param(
            f"<Eod><Last/><ConnectorId>{OTHER}</ConnectorId></Eod>", "eod", Eod(False, True, UUID(OTHER)),
            marks=pytest.mark.rule("SR-090"),
        ),
        pytest.param(
            "<Provider><Name> ProviderName</Name><Type>1234</Type></Provider>",
            "provider",
            Provider(1234, "ProviderName"),
            marks=pytest.mark.rule("SR-091"),
        ),
        *(
            pytest.param(
                f"<{name}Mqf>\nhttp://a/msmq/q\t{URL}  DIRECT=OS:b\\q\r\n</{name}Mqf>",
                f"{name.lower()}_mqf",
                ("http://a/msmq/q", URL, "DIRECT=OS:b\\q"),
                marks=pytest.mark.rule("SR-093"),
            )
            for name in ("Destination", "Admin", "Response")
        ),
    ],
)  # fmt: skip
def test_what_msmq_may_have(element: str, attribute: str, value: object) -> None:
    plain = read_envelope(full()).msmq
    found = read(path(), properties(), msmq(element)).msmq
    assert getattr(found, attribute) == value
    assert getattr(plain, attribute) in (None, False, ())
    refused(envelope(path(), properties(), msmq(element * 2)), "twice")


@pytest.mark.parametrize(
    ("element", "values"),
    [
        pytest.param("Class", ["65536", "-1"], marks=pytest.mark.rule("SR-081")),
        pytest.param("Priority", ["8", "-1"], marks=pytest.mark.rule("SR-082")),
        pytest.param("BodyType", ["4294967296"], marks=pytest.mark.rule("SR-088")),
        pytest.param("SourceQmGuid", [f"{{{GUID}}}"], marks=pytest.mark.rule("SR-092", "SR-030")),
        pytest.param("TTrq", ["2007-06-19T21:06:54Z"], marks=pytest.mark.rule("SR-094", "SR-031")),
        pytest.param("Correlation", ["AAAA", "?", ""], marks=pytest.mark.rule("SR-084")),
        pytest.param("ConnectorType", ["x", ""], marks=pytest.mark.rule("SR-086")),
        pytest.param("App", ["-1", "4294967296", ""], marks=pytest.mark.rule("SR-087")),
        pytest.param("HashAlgorithm", ["sha1"], marks=pytest.mark.rule("SR-089")),
        pytest.param("Eod", ["<ConnectorId>x</ConnectorId>"], marks=pytest.mark.rule("SR-090")),
        pytest.param("Provider", ["<Type>1</Type>", "<Name>x</Name>", ""], marks=pytest.mark.rule("SR-091")),
    ],
)
def test_values_that_msmq_may_not_have(element: str, values: list[str]) -> None:
    for value in values:
        known = element in ("Class", "Priority", "BodyType", "SourceQmGuid", "TTrq")
        text = msmq(**{element: value}) if known else msmq(f"<{element}>{value}</{element}>")
        refused(envelope(path(), properties(), text))
