"""What queue managers tell, as it comes."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from msmq_fast.protocol.columns import EVENT_COLUMNS
from msmq_fast.spark.lake.bronze import shaped
from msmq_fast.spark.lake.tables import EVENTS


def feed() -> DataFrame:
    spark = SparkSession.active()
    source = spark.readStream.format("msmq").option("url", spark.conf.get("spark.msmq.url"))
    source = (
        source.option("content", "events")
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "false")
    )
    return shaped(source.load(), EVENTS, [column.name for column in EVENT_COLUMNS])


def identified() -> object:
    return F.col("qm_guid").isNotNull() & F.col("feed_seq").isNotNull() & F.col("event_time").isNotNull()


@dp.table(comment="The event feeds of all queue managers, append only")
def bronze_events() -> DataFrame:
    return feed().where(identified())


@dp.table(comment="Rows that can be no events")
def quarantine_events() -> DataFrame:
    return feed().where(~identified())
