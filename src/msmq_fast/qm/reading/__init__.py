"""Reads of one queue: waiting reads, cursors, two-phase reads, and the reader of remote queues."""
