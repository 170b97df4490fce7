"""Captures of network traffic as tables: files, layers, streams, MSMQ packets. No PySpark here."""
