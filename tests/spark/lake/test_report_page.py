"""What a reader of the page sees first in a wide table: what is cut at the right is never the verdict."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pyarrow as pa

from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.reporthtml import page
from msmq_fast.spark.lake.reporttext import markdown
from msmq_fast.spark.lake.summary import COUNTS, gather

DAY = date(2026, 3, 1)
ROW = {
    "verdict": "unproven",
    "sender": "0f6bd54c-9b7d-4b1b-8c0a-0123456789ab",
    "receiver": None,
    "dest": "DIRECT=OS:a-computer-with-a-long-name\\private$\\a-queue-with-a-long-name",
}


def test_the_verdict_is_the_first_column_and_nothing_is_cut_on_paper(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    rows = pa.Table.from_pylist([ROW | dict.fromkeys(COUNTS, 123_456_789)])
    lake.write_table(f"gold/reconciliation/day={DAY}", rows)
    found = gather(lake, DAY)
    shown = page(found)
    table = shown[shown.index("<h2>Sender and receiver</h2>") :].partition("</table>")[0]
    assert re.findall(r"<th[^>]*>(.*?)</th>", table)[:3] == ["verdict", "from", "to"]
    assert re.findall(r"<td[^>]*>(.*?)</td>", table)[0] == "unproven"
    assert re.search(r"@media print \{.*\.wide \{ overflow-x: visible", shown, re.DOTALL)
    assert re.search(r"\ntd \{ overflow-wrap: anywhere", shown)  # long names do not widen the table
    assert "| verdict | from | to |" in markdown(found)
