"""DCE/RPC (MS-RPCE): the RPC runtime, the interfaces that it serves (MS-MQQP, MS-MQMP, MS-MQRR), and the
client.
"""
