"""Transactions, what a handle does inside one, and messages that are put back too often."""
