"""Messages that leave: acknowledgments, dead letters, sequences, and the life of outgoing queues."""
