"""Options: what is wrong is said in one line that names the right one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from msmq_fast.protocol.columns import chosen
from msmq_fast.spark.limits import Limits, Patience
from msmq_fast.spark.offsets import Offset, OffsetError, Share, allot
from msmq_fast.spark.options import OptionError
from msmq_fast.spark.pcap.source import capture_options
from msmq_fast.spark.source import OPTIONS, source_options
from msmq_fast.spark.storereader import store_options
from tests.spark.driving import batch_rows, stream_reader
from tests.spark.fakeserver import FakeServer

pytestmark = pytest.mark.smoke

HERE = {"url": "msmq+bulk://127.0.0.1:1802", "subscribe": "orders"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscirbe": "orders"}, "no option 'subscirbe'; did you mean 'subscribe'?"),
        ({"maxrowspertriger": "1"}, "did you mean 'maxRowsPerTrigger'?"),
        ({"zzz": "1"}, "no option 'zzz'; there are assign, auth.token"),
        ({"path": "/tmp/x"}, "takes no path"),
        ({"url": "localhost:1802"}, "use msmq+bulk://host:port"),
        ({"url": " , "}, "names no queue manager"),
        ({"url": "msmq+bulk://a:1,msmq+bulk://a:1/"}, "has the same address twice"),
        ({"subscribePattern": ".*"}, "cannot be combined"),
        ({"subscribe": " "}, "'subscribe' must be a text that is not empty"),
        ({"subscribe": "orders,Orders"}, "names a queue twice"),
        ({"content": "bodies"}, "must be messages or journal or deadletter or events, not 'bodies'"),
        ({"content": "events"}, "cannot be combined with content=events"),
        ({"columns": "label,boddy"}, "option 'columns'.*'boddy'"),
        ({"startingOffsets": "first"}, "earliest, latest, or JSON"),
        ({"startingOffsets": '{"orders": "x"}'}, "must have a number, -2"),
        ({"startingOffsets": "earliest", "startingTimestamp": "1"}, "cannot be combined"),
        ({"startingOffsetsByTimestamp": "[1]"}, "must be a JSON object"),
        (
            {"startingOffsetsByTimestamp": '{"orders": "now"}'},
            "'startingOffsetsByTimestamp': 'orders' must have milliseconds since 1970",
        ),
        (
            {"startingOffsetsByTimestamp": '{"orders": 1}', "startingOffsets": '{"audit": 1}'},
            "'startingOffsets' and 'startingOffsetsByTimestamp' cannot both name queues",
        ),
        ({"endingOffsetsByTimestamp": '{"orders": 1}'}, "is for batch queries only: use spark.read"),
        (
            {"startingOffsetsByTimestamp": "{}", "onSourceCommit": "remove", "subscription": "s"},
            "cannot be combined with onSourceCommit=remove",
        ),
        ({"maxRowsPerTrigger": "0"}, "must be an integer from 1, not '0'"),
        ({"maxBytesPerTrigger": "4x"}, 'invalid size "4x": write a number with a unit, for example 64 MiB'),
        ({"maxTriggerDelay": "soon"}, 'invalid duration "soon": write a number with a unit'),
        ({"minRowsPerTrigger": "9", "maxRowsPerTrigger": "3"}, "greater than 'maxRowsPerTrigger'"),
        ({"failOnDataLoss": "maybe"}, "must be true or false"),
        ({"endingOffsets": "latest"}, "is for batch queries only: use spark.read"),
        ({"onSourceCommit": "remove"}, "'subscription' is missing"),
        ({"lease": "1h"}, "requires onSourceCommit=remove"),
        ({"assign": "[]", "subscribe": None}, "must be a JSON object"),
        ({"assign": '{"msmq+bulk://b:1": ["x"]}', "subscribe": None}, "one entry for each address"),
        ({"assign": '{"a": 1}', "subscribe": None}, "must be like"),
        ({"auth.token": "a", "auth.tokenFile": "b"}, "cannot be combined"),
        ({"timeoutMs": "0"}, "'timeoutMs' must be a duration from 1 millisecond to a day, such as"),
        ({"timeoutMs": "999999999999d"}, "a duration from 1 millisecond to a day"),
        ({"numRetries": "-1"}, "'numRetries' must be an integer from 0, not '-1'"),
        # What would change nothing:
        ({"tls.caFile": "/ca.pem"}, "'tls.caFile' requires https:// in option 'url'"),
        (
            {"columns": "label", "includeRaw": "true"},
            "'includeRaw' requires columns=core or all; in a list of names",
        ),
        (
            {"content": "events", "subscribe": None, "includeBody": "false"},
            "cannot be combined with content=events",
        ),
        ({"content": "events", "subscribe": None, "lease": "1h"}, "'lease' requires onSourceCommit=remove"),
        ({"maxTriggerDelay": "1m"}, "'maxTriggerDelay' requires option 'minRowsPerTrigger'"),
    ],
)
def test_wrong_options_of_a_stream(options: Mapping[str, str | None], message: str) -> None:
    given = {name: value for name, value in {**HERE, **options}.items() if value is not None}
    with pytest.raises(OptionError, match=message.replace("?", r"\?").replace("+", r"\+")) as caught:
        stream_reader(**given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maxRowsPerTrigger": "5"}, "is for streams only: use spark.readStream"),
        ({"subscription": "x"}, "is for streams"),
        ({"onSourceCommit": "remove"}, "cannot be remove in a batch query"),
        ({"subscribe": None}, "no queue is selected"),
        ({"url": None}, "'url' is missing"),
    ],
)
def test_wrong_options_of_a_batch(options: Mapping[str, str | None], message: str) -> None:
    given = {name: value for name, value in {**HERE, **options}.items() if value is not None}
    with pytest.raises(OptionError, match=message.replace("?", r"\?")):
        batch_rows(**given)


@pytest.mark.parametrize(
    ("read", "options", "message"),
    [
        (store_options, {"table": "events", "queues": "orders"}, "'queues' requires table=messages"),
        (store_options, {"table": "raw", "includeBody": "false"}, "'includeBody' requires table=messages"),
        (
            store_options,
            {"columns": "label", "includeSecurity": "true"},
            "in a list of names, name the column",
        ),
        (store_options, {"copyDirectory": "/tmp/x"}, "'copyDirectory' requires allowLive=true"),
        (capture_options, {"table": "packets", "includeRaw": "true"}, "'includeRaw' goes with table=frames"),
        (capture_options, {"table": "sessions", "includeBody": "false"}, "goes with table=frames or packets"),
        (capture_options, {"table": "packets", "maxFlowBytes": "1m"}, "goes with table=frames or sessions"),
    ],
)
def test_options_that_change_nothing(
    read: Callable[[Mapping[str, str]], object], options: Mapping[str, str], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        read(options)


def test_positions_of_queues_that_are_not_read_are_refused(fake: FakeServer) -> None:
    fake.manager.create("orders")
    with pytest.raises(OptionError, match="names 'oders', which is not a queue of this query"):
        batch_rows(url=fake.url, subscribe="orders", startingOffsets='{"oders": 3}')


def test_values() -> None:
    options = source_options(
        {"MAXBYTESPERTRIGGER": "64m", "lease": "1h", "timeoutMs": "250", "failondataloss": "No"}
    )
    assert options["maxBytesPerTrigger"] == 64 << 20
    assert options["lease"] == 3_600_000
    assert options["timeoutMs"] == 250
    assert options["failOnDataLoss"] is False
    assert options["maxTriggerDelay"] == 900_000
    assert options["content"] == "messages"
    assert options.given == {"maxBytesPerTrigger", "lease", "timeoutMs", "failOnDataLoss"}


@pytest.mark.parametrize(
    ("text", "size"), [("64m", 64 << 20), ("64MiB", 64 << 20), ("64MB", 64_000_000), ("64", 64), ("1k", 1024)]
)
def test_sizes_mean_what_they_mean_in_the_configuration(text: str, size: int) -> None:
    assert source_options({"maxBytesPerTrigger": text})["maxBytesPerTrigger"] == size


def test_every_option_of_the_table_is_in_the_documentation() -> None:
    from pathlib import Path

    text = (Path(__file__).parents[2] / "docs" / "how-to" / "spark.md").read_text()
    assert [option.name for option in OPTIONS if f"`{option.name}`" not in text] == []


def test_limits_are_shared() -> None:
    assert allot([(10, 100), (0, 0)], None, None, 0) == [Share(None, None), Share(None, None)]
    assert [s.rows for s in allot([(900, 1), (100, 1)], 10, None, 0)] == [9, 1]
    assert [s.rows for s in allot([(5, 1), (5, 1), (5, 1)], 2, None, 0)] == [1, 1, 0]
    assert [s.rows for s in allot([(5, 1), (5, 1), (5, 1)], 2, None, 1)] == [0, 1, 1]
    assert sum(s.rows or 0 for s in allot([(7, 1), (7, 1), (1, 1)], 11, None, 3)) == 11
    assert all(s.bytes for s in allot([(1, 10), (1, 10)], None, 1, 0))


def test_waiting_for_more_rows() -> None:
    now = [0.0]
    patience = Patience(Limits(min_rows=5, max_delay_ms=1000), lambda: now[0])
    assert patience.wait(3)
    now[0] = 0.9
    assert patience.wait(3)
    now[0] = 1.1
    assert not patience.wait(3)
    assert patience.wait(1)
    assert not patience.wait(5)


def test_offsets_that_are_none() -> None:
    for text in (
        '{"v": 1}',
        '{"v": 3, "mode": "keep", "qms": {}}',
        "{}",
        '{"v":1,"mode":"keep","qms":{"a":1}}',
    ):
        with pytest.raises(OffsetError):
            Offset.from_json(text, "keep")
    empty = Offset("keep")
    assert Offset.from_json(json.dumps(empty.to_json()), "keep") == empty


def test_properties_of_a_table_of_a_catalog_are_passed_over() -> None:
    """Spark adds them to the options of `CREATE TABLE … USING msmq`, which was refused for them."""
    of_spark = {"provider": "msmq", "path": "file:/w/ot", "owner": "root"}
    written = {f"option.{name}": text for name, text in HERE.items()}
    assert source_options({**of_spark, **written})["subscribe"] == "orders"
    with pytest.raises(OptionError, match="did you mean 'subscribe'"):
        source_options({**of_spark, **written, "option.subscirbe": "orders"})
    with pytest.raises(OptionError, match="takes no path"):
        source_options({**HERE, "path": "file:/w/ot"})


def test_columns_beside_a_group() -> None:
    core = [column.name for column in chosen("core")]
    assert [column.name for column in chosen("core,xact_id")] == [*core, "xact_id"]
    assert [column.name for column in chosen("label, core", body=False)][-1] != "label"
    assert [column.name for column in chosen("core,label,raw_packet")] == [*core, "raw_packet"]
    assert len(chosen("all,core")) == len(chosen("all"))
    with pytest.raises(ValueError, match="there is no column 'xyz'"):
        chosen("core,xyz")
    with pytest.raises(ValueError, match="'xact_id' is named twice"):
        chosen("core,xact_id,xact_id")
    assert source_options({**HERE, "columns": "core,xact_id", "includeBody": "false"})["includeBody"] is False


def test_what_a_catalog_adds_is_passed_over_and_a_misspelt_option_is_not() -> None:
    """Spark passes the properties of a table, and each of its options twice."""
    added = {"provider": "msmq", "owner": "root", "location": "/x", "cost.centre": "7"}
    options = {
        name: text
        for option, text in HERE.items()
        for name, text in ((option, text), (f"option.{option}", text))
    }
    found = source_options({**added, **options})
    assert (found["subscribe"], found.given) == ("orders", {"url", "subscribe"})
    with pytest.raises(OptionError, match="no option 'colums'; did you mean 'columns'"):
        source_options({**added, **options, "colums": "core", "option.colums": "core"})
    with pytest.raises(OptionError, match=r"no option 'cost\.centre'"):
        source_options({**HERE, "cost.centre": "7"})  # not of a catalog
