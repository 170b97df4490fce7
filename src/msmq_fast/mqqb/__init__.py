"""MS-MQQB: sessions with other queue managers over TCP, in both roles, and the ping protocol over UDP.

The engines do no IO: they are given bytes and the time and hand back bytes, effects and their next deadline.
"""
