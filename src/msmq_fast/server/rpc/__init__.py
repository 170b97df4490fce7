"""RPC on sockets: served interfaces, and queues of other computers."""
