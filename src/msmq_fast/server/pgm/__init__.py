"""Messages to and from multicast groups (PGM), on sockets."""
