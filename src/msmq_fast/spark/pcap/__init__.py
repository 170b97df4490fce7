"""Reads captures of network traffic as tables: files, network layers, TCP streams, MSMQ packets. Needs no
PySpark.
"""
