"""The path of an envelope that arrives: labels, destinations, identifiers, reverse paths."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.srmp.reading import read, refused, with_path
from tests.support.srmp.texts import (
    ACTION,
    GUID,
    ID,
    OTHER,
    RP,
    SRMP,
    TO,
    URL,
    envelope,
    msmq,
    path,
    properties,
)

REV = f"<rev><via>{URL}</via></rev>"


@pytest.mark.rule("SR-043")
@pytest.mark.parametrize(
    "header",
    [
        "",
        path(attributes=""),
        path(attributes='mustUnderstand="1"'),
        path(attributes='se:mustUnderstand="0"'),
        path().replace(RP, RP[:-1]),
        path().replace(RP, SRMP),
    ],
)
def test_a_path_must_be_there(header: str) -> None:
    refused(envelope(header, properties()))


@pytest.mark.rule("SR-044", "SR-048", "SR-049")
@pytest.mark.parametrize("missing", [ACTION, TO, ID])
def test_what_a_path_must_have(missing: str) -> None:
    refused(envelope(path((ACTION + TO + ID).replace(missing, "")), properties()), "missing")
    refused(envelope(path(ACTION + TO + ID + missing), properties()), "twice")


@pytest.mark.rule("SR-044", "SR-045")
@pytest.mark.parametrize(
    ("action", "label"),
    [
        ("MSMQ:mqsender label", "mqsender label"),
        ("MSMQ:", ""),
        ("", ""),
        ("Generic label", ""),
        ("msmq:x", ""),
        (" \n MSMQ:indented", "indented"),
        ("MSMQ: blanks are kept ", " blanks are kept "),
        ("MSMQ:MSMQ:x", "MSMQ:x"),
    ],
)
def test_labels(action: str, label: str) -> None:
    assert with_path(f"<action>{action}</action>{TO}{ID}").label == label


def test_labels_have_a_size() -> None:
    long = "\U0001f600" * 124 + "x"
    assert with_path(f"<action>MSMQ:{long}</action>{TO}{ID}").label == long
    refused(envelope(path(f"<action>MSMQ:{long}x</action>{TO}{ID}"), properties()), "249")
    assert with_path(f"<action>{'y' * 1000}</action>{TO}{ID}").label == ""


@pytest.mark.rule("SR-048")
def test_destinations() -> None:
    for to in ("http://h/msmq/q", "HTTPS://h:8443/msmq/private$/q", "http://h\\msmq\\q"):
        found = with_path(f"{ACTION}<to>\n{to} </to>{ID}")
        assert (found.to, found.multicast, found.destination_name) == (to, None, f"DIRECT={to}")
    found = with_path(f"{ACTION}<to>MSMQ:MULTICAST=234.1.1.1:8001</to>{ID}")
    assert found.multicast == "234.1.1.1:8001"
    assert found.destination_name == "MULTICAST=234.1.1.1:8001"
    for to in ("ftp://h/q", "", "MSMQ:DIRECT=OS:h\\q", "h/msmq/q", "MULTICAST=234.1.1.1:8001", "file:///x"):
        refused(envelope(path(f"{ACTION}<to>{to}</to>{ID}"), properties()), "<to> holds neither")


@pytest.mark.rule("SR-049", "SR-050")
@pytest.mark.parametrize("text", ["", "anything", "uuid:1", f"uuid:x@{GUID}", f"uuid:1@{{{GUID}}}"])
def test_identifiers_count_with_msmq_only(text: str) -> None:
    headers = path(f"{ACTION}{TO}<id>{text}</id>") + properties()
    assert read(headers).identifier == (UUID(int=0), 1)
    refused(envelope(headers, msmq()), "identifier")


@pytest.mark.rule("SR-051")
def test_the_guid_of_msmq_wins() -> None:
    found = with_path(f"{ACTION}{TO}<id>uuid:8@{OTHER}</id>")
    assert found.identifier == (UUID(GUID), 8)


@pytest.mark.rule("SR-052", "SR-053")
@pytest.mark.parametrize(
    ("rev", "via"),
    [
        ("", None),
        ("<rev><via/></rev>", None),
        ("<rev><via></via></rev>", None),
        ("<rev><via> \n </via></rev>", None),
        (REV, URL),
        ("<rev><via>https://h/msmq/q</via></rev>", "https://h/msmq/q"),
        (f"<rev><via>MSMQ:PRIVATE={GUID}\\00000007</via></rev>", f"MSMQ:PRIVATE={GUID}\\00000007"),
    ],
)
def test_reverse_paths(rev: str, via: str | None) -> None:
    assert with_path(ACTION + TO + rev + ID).via == via


@pytest.mark.rule("SR-052", "SR-053")
@pytest.mark.parametrize(
    "rev",
    ["<rev/>", f"<rev><via>{URL}</via><via>{URL}</via></rev>", REV + REV, "<rev><via>ftp://h/q</via></rev>"],
)
def test_reverse_paths_that_are_none(rev: str) -> None:
    refused(envelope(path(ACTION + TO + ID + rev), properties()), "via|twice")


@pytest.mark.rule("SR-054")
def test_what_a_path_may_have_besides() -> None:
    others = f"<fwd><via>{URL}</via></fwd><from>x</from><relatesTo>a</relatesTo><relatesTo/><fault/><fault/>"
    assert with_path(others + ACTION + TO + ID) == with_path(ACTION + TO + ID)
