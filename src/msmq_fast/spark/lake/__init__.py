"""The lake: all messages and events of queue managers as Parquet tables, and an audit that proves the fate of
each message.
"""
