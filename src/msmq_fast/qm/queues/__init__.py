"""Queues of this computer and outgoing ones: what they are, their rights, and their records."""
