"""A store that no server runs on, read as tables: opening, catalogue, messages, events. No PySpark here."""
