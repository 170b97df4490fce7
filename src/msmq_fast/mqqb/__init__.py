"""MS-MQQB: sessions with other queue managers over TCP, in both roles, and the ping protocol over UDP.

The engines do no IO: the caller passes bytes and the time, and gets bytes to send, actions that need sockets,
and the next deadline.
"""
