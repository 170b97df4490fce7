"""Found by PySpark because of its name: makes `format("msmq_store")` known."""

from msmq_fast.spark.storesource import StoreDataSource as DefaultSource

__all__ = ["DefaultSource"]
