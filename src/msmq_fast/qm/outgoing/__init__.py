"""Outgoing messages: acknowledgments, dead letters, sequences, and the life cycle of outgoing queues."""
