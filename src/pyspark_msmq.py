"""Found by PySpark because of its name: makes `format("msmq")` known."""

from msmq_fast.spark.datasource import MsmqDataSource as DefaultSource

__all__ = ["DefaultSource"]
