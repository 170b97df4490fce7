"""Local and outgoing queues: their data, their access rights, and their records."""
