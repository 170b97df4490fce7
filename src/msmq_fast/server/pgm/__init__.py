"""Multicast, on sockets."""
