"""Sockets of all front ends: addresses, listening, dialing, and one table of connections with its limits."""
