"""The pages of a report: what people see first, links, colours, paper, and names that try to be markup."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import main
from msmq_fast.spark.lake.reporthtml import page
from msmq_fast.spark.lake.reporttext import markdown
from msmq_fast.spark.lake.summary import COUNTS, gather
from tests.support.lakes import write_day

DAY = date(2026, 3, 1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CONSOLE = "https://orders01:1803/ui"
HOSTILE = (
    "\"'><script>alert(1)</script><img src=x onerror=a()>|[x](javascript:a)\n# h `c` \u202egnp.exe\x00&amp;"
)
ROW = {
    "verdict": "unproven",
    "sender": "0f6bd54c-9b7d-4b1b-8c0a-0123456789ab",
    "receiver": None,
    "dest": "DIRECT=OS:a-computer-with-a-long-name\\private$\\a-queue-with-a-long-name",
}


def write(lake: Lake, table: str, rows: list[dict[str, Any]], day: date = DAY) -> None:
    write_day(lake, table, str(day), pa.Table.from_pylist(rows))


def filled(lake: Lake, name: str, day: date = DAY, **figures: int) -> None:
    """All tables of a day, with `name` wherever a name, label or reason may be."""
    noon = datetime.combine(day, datetime.min.time(), UTC) + timedelta(hours=12)
    sums = dict.fromkeys(COUNTS, 0) | {"sent": 1_234_567, "received": 1_234_560, "open": 3} | figures
    way = {"sender": name, "receiver": name, "dest": name}
    write(lake, "gold/reconciliation", [way | sums | {"verdict": "ok", "pending": 0}], day)
    edges = {"began_late": False, "ended_early": False, "restored": False, "rolled_back": False}
    feed = {"qm": name, "name": name, "incarnation": 1, "from_seq": 1, "to_seq": 7_654_321}
    feed |= {"events": 7_654_321, "missing": 0, "dropped": 0, "through": noon, "whole": True, **edges}
    write(lake, "gold/coverage", [feed], day)
    queue = {"qm": name, "queue": name}
    counts = {"counted": 4, "computed": 4, "equal": True}
    looks = [(name, 1), (f"{name}, seldom used", 1), (f"{name}, made later", 9)]
    counted = [
        {"qm": name, "queue": one, "taken_at": noon + timedelta(days=days)} | counts for one, days in looks
    ]
    write(lake, "gold/counters", counted, day)
    life = {"message_id": name, "dest": name, "first_sent": noon, "first_arrived": noon}
    life |= {"terminal_time": noon, "reason": name, "dead_lettered": False, "acked_time": noon}
    life |= {"sender": name, "receiver": name, "seen_arrived": True}
    states = [("nacked", False), ("open", True), ("open", False), ("lost", False)]
    write(lake, "silver/lifecycle", [life | {"state": s, "overdue": o} for s, o in states], day)
    missed = way | {"state": "nacked", "reason": name, "arrived": False, "dead_lettered": False, "n": 7}
    write(lake, "gold/undelivered", [missed | {"sample_ids": [name]}], day)
    write(lake, "gold/duplicates", [{"message_id": name, "dest": name, "n": 2, "wire_dup": False}], day)
    aborted = {"abort_count": 3, "move_count": 1}
    write(lake, "gold/poison", [queue | {"message_id": name, "label": name} | aborted], day)
    gap = {"sender": name, "dest": name, "seq_id": 7_711_478_308_109_549_570, "from_no": 1, "to_no": 2}
    kinds = ("gap", "restart")
    write(lake, "gold/sequence_gaps", [gap | {"kind": kind, "first_seen": noon} for kind in kinds], day)
    leg = {"sender": name, "dest": name, "leg": "total", "n": 5, "p50_ms": 1.5, "p95_ms": 2500.0}
    leg |= {"p99_ms": 7_200_000.0, "max_ms": 7_200_000.0, "negative": 0, "clock_skew_ms": -3.0}
    write(lake, "gold/latency_day", [leg], day)
    write(lake, "gold/latency", [leg | {"hour": noon + timedelta(hours=hour)} for hour in range(3)], day)
    minutes = {"arrived": 5, "received": 5, "expired": 0, "nacked": 0, "bytes": 10, "depth_end": 3}
    names = (name, f"{name}\\private$\\q;journal", f"{name}\\private$\\order_queue$", f"DIRECT=OS:{name}")
    write(
        lake,
        "gold/queue_minute",
        [{"qm": name, "queue": one, "minute": noon} | minutes for one in names],
        day,
    )
    oldest = {"outgoing": False, "n": 3, "oldest": noon, "oldest_id": name}
    write(lake, "gold/waiting", [queue | oldest], day)
    write(lake, "gold/nack_by_class", [queue | {"class_name": name, "n": 7}], day)


class Tags(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]
        self.anchors |= {value or "" for name, value in attrs if name == "id"}


def report(lake: Lake, directory: Path, *words: str) -> tuple[str, str]:
    html, text = directory / "report.html", directory / "report.md"
    forms = ("--html", str(html), "--markdown", str(text))
    assert main(["report", "--lake", lake.root, *forms, *words]) == Exit.OK
    return html.read_text(), text.read_text()


def test_names_are_no_markup_wherever_they_are(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    filled(lake, HOSTILE)
    html, text = report(lake, tmp_path, "--title", HOSTILE, "--console", CONSOLE)
    site = tmp_path / "site"
    filled(lake, HOSTILE, DAY + timedelta(days=1))
    assert main(["report", "--lake", lake.root, "--all", str(site), "--title", HOSTILE]) == Exit.OK
    pages = [html, *(file.read_text() for file in site.glob("*.html"))]
    assert len(pages) == 4
    known = "html head meta title style body nav h1 h2 h3 p b a div span i ul li table thead tbody tr th td"
    known += " small details summary label input"
    drawn = "svg g text line rect circle polyline"
    for shown in pages:
        found = Tags(shown)
        assert found.tags <= {*known.split(), *drawn.split()}
        assert not [name for name in found.names if name.startswith("on")]
        for link in found.links:
            assert re.fullmatch(
                r"#\w+|[\w-]+\.(html|json)|" + re.escape(CONSOLE) + r"/trace\?id=[\w.%+-]+", link
            ), link
        assert "\u202e" not in shown
        assert "\x00" not in shown
        assert "default-src 'none'" in shown
        assert found.anchors >= {link[1:] for link in found.links if link.startswith("#")}
    assert "\\u{202e}gnp.exe" in html
    assert "<script" not in text
    assert "[" not in re.sub(r"\\.", "", text)
    assert "\n# h" not in text


def test_figures_are_in_colour_and_lead_to_their_messages(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    filled(lake, "host\\private$\\q", undelivered=7, discarded=7)
    html, text = report(lake, tmp_path, "--console", CONSOLE)
    assert '<a class="warn" href="#undelivered"><b>7</b>not delivered</a>' in html
    assert '<a class="zero" href="#lost"><b>0</b>lost</a>' in html
    assert "<b>1,234,567</b>sent" in html
    table = html[html.index('<h2 id="destinations">') :].partition("</table>")[0]
    assert 'class=n><a href="#undelivered">7</a></td>' in table
    assert f'<a href="{CONSOLE}/trace?id=host%5Cprivate%24%5Cq">' in html
    for name in (
        "No event is missing",
        "No message is lost",
        "Queues have as many messages as the events tell",
    ):
        assert re.search(f'✓ passed</span></td><td><a href="#\\w+">{name}</a></td>', html)
        assert f"- passed: **{name}**" in text
    noted = '! noted</span></td><td><a href="#undelivered">Every message was delivered or waits</a></td>'
    assert noted in html
    assert (
        '! unproven</span></td><td><a href="#sequences">Transactional sequences are complete</a></td>' in html
    )


def test_identifiers_are_no_quantities_and_journals_are_apart(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    filled(lake, "host")
    html, text = report(lake, tmp_path)
    for shown in (html, text):
        assert "7711478308109549570" in shown
        assert "7,711,478" not in shown
        assert "7654321" in shown
        assert "1 sequences began again at 1, which is normal" in shown
        assert "| restart |" not in shown
    queues = html[html.index('<h2 id="queues">') : html.index('<h2 id="journals">')]
    assert ";journal" not in queues
    numbers = r"<td[^>]*>host</td><td[^>]*>queue</td><td[^>]*>(\d+)</td>"
    depths = dict(re.findall(r">(host[^<]*)</td>" + numbers, queues))
    assert depths == {"host": "3", "host, seldom used": "4"}  # the events come first, a later count never
    assert "order_queue$" not in queues
    assert ">DIRECT=OS:host<" in queues
    journals = html[html.index('<h2 id="journals">') : html.index('<h2 id="coverage">')]
    assert ";journal" in journals
    assert "order_queue$" in journals
    assert "the oldest message came 12 h before the end of the day" in html
    assert "2.5 s" in html


def test_the_head_says_what_where_and_when(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    filled(lake, "orders01")
    html, _ = report(lake, tmp_path, "--title", "Orders of Bern")
    assert "<title>Orders of Bern of 2026-03-01</title>" in html
    assert re.search(r"queue managers: orders01; lake .*; report made \d{4}-\d\d-\d\d [\d:]+ on \S+", html)
    capsys.readouterr()
    assert main(["report", "--lake", lake.root, "--json"]) == Exit.OK
    told = json.loads(capsys.readouterr().out)
    assert {check["result"] for check in told["checks"]} == {"passed", "failed", "noted", "unproven"}


def test_all_days_and_an_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    for number in range(3):
        filled(lake, "host", DAY + timedelta(days=number), undelivered=number, discarded=number)
    site = tmp_path / "site"
    assert main(["report", "--lake", lake.root, "--all", str(site)]) == Exit.OK
    days = [f"2026-03-0{number}" for number in (1, 2, 3)]
    forms = [f"{day}.{form}" for day in days for form in ("html", "json")]
    assert sorted(file.name for file in site.iterdir()) == [*forms, "index.html"]
    assert [json.loads((site / f"{day}.json").read_text())["day"] for day in days] == days
    index = (site / "index.html").read_text()
    order = [index.index(f'<a href="{day}.html">') for day in days]
    assert order == sorted(order, reverse=True)  # the newest first
    assert index.count('<rect class="bar') >= 5  # the trend
    middle = (site / f"{days[1]}.html").read_text()
    for name in ("index.html", f"{days[0]}.html", f"{days[2]}.html", f"{days[1]}.json"):
        assert f'<a href="{name}">' in middle
    assert "<b>1</b>not delivered<small>03-01: 0</small>" in middle  # beside the day before
    assert '<h2 id="trend">' in middle
    assert main(["report", "--lake", lake.root, "--all", str(site), "--json"]) == Exit.USAGE
    with pytest.raises(SystemExit):
        main(["report", "--lake", lake.root, "--console", "javascript:alert(1)"])
    assert "https://" in capsys.readouterr().err


def test_the_verdict_is_the_first_column_and_nothing_is_cut_on_paper(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    write(lake, "gold/reconciliation", [ROW | dict.fromkeys(COUNTS, 123_456_789)])
    found = gather(lake, DAY)
    shown = page(found)
    table = shown[shown.index('<h2 id="destinations">') :].partition("</table>")[0]
    assert re.findall(r"<th(?: [^>]*)?>(.*?)</th>", table)[:3] == ["verdict", "from", "to"]
    assert "unproven" in re.findall(r"<td[^>]*>(.*?)</td>", table)[0]
    assert "overflow-x" not in shown  # no table hides columns behind a bar
    assert re.search(r"\ntd \{ overflow-wrap: anywhere", shown)  # long names do not widen the table
    assert "| verdict | from | to |" in markdown(found)


def test_a_check_says_what_it_compares_and_good_rows_can_be_hidden(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    filled(lake, "host")
    shown = page(gather(lake, DAY))
    head, _, rest = shown.partition('<h2 id="checks">')
    checks = rest.partition("</table>")[0]
    rows = re.findall(r"<tr(?: class=\"(\w+)\")?><td><span class=\"mark (\w+)", checks)
    assert {(css == "fine", meaning == "good") for css, meaning in rows} == {(True, True), (False, False)}
    assert checks.count("<details><summary>") == len(rows)
    assert all(re.findall(r"<details><summary>[^<]+</summary><p>[^<]+</p></details>", checks))
    assert '<td><a href="#coverage">No event is missing</a></td>' in checks
    assert '<label class="only"><input type="checkbox">' in checks
    assert ".only:has(:checked) + table tr.fine { display: none; }" in shown
    sections = re.findall(r'<h2 id="(\w+)">', rest)
    named = re.findall(r'<a href="#(\w+)">', head[head.index('<nav class="contents">') :])
    assert named == ["checks", *sections]
