"""The Spark side: data sources, sink and pipeline; used beside the server, on drivers and executors."""
