"""Queues of this computer and outgoing ones: what they are, who may use them, and their records."""
