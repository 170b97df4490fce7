"""Counts the messages of queues by priority: spark-submit read.py URL QUEUE[,QUEUE…]."""

import sys

from pyspark.sql import SparkSession

if len(sys.argv) != 3:
    sys.exit("usage: spark-submit read.py msmq+bulk://HOST:1802 QUEUE[,QUEUE...]")
spark = SparkSession.builder.getOrCreate()
rows = spark.read.format("msmq").option("url", sys.argv[1]).option("subscribe", sys.argv[2]).load()
rows.groupBy("queue", "priority").count().orderBy("queue", "priority").show(100, truncate=False)
