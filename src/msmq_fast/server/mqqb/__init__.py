"""MS-MQQB on sockets."""
