"""Found by PySpark because of its name: makes `format("msmq_pcap")` known."""

from msmq_fast.spark.pcap.datasource import CaptureDataSource as DefaultSource

__all__ = ["DefaultSource"]
