"""Reads a store that no server has open as tables: opening, catalogue, messages, events. Needs no PySpark."""
