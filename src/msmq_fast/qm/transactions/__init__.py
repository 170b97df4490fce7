"""Transactions, the operations of a handle inside a transaction, and poison messages."""
