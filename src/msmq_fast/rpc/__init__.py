"""DCE/RPC (MS-RPCE): the runtime, the interfaces on it (MS-MQQP, MS-MQMP, MS-MQRR), and the client side."""
