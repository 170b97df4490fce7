"""The queue manager protocol (MS-MQQB), on sockets."""
