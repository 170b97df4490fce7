"""Leases for bulk readers and stages of bulk writers."""
