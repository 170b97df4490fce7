"""Reads of one queue: those that wait, cursors, two-phase reads, and the reader of remote queues."""
