"""The lake: everything that passes queue managers as Parquet tables, and the audit that proves what became of
it.
"""
