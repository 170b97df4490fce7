"""The queue manager: data model and events of MS-MQDMPR. No sockets, no clock of its own, no LMDB calls."""
