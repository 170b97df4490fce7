"""The client side: reads queues of other computers (MS-MQRR 3.2, MS-MQQP 3.2, docs/how-to/remote-read.md).

`connection` and `binding` implement the client of the RPC runtime, without IO. `endpoint` queries endpoint
mappers. `opening` opens a queue of another computer, by `remoteread` or, if that computer does not serve it,
by `qm2qm`. Front ends read through `reader` and `subscription`. `settling` finds out whether a message was
removed if the connection ended after its acknowledgment was sent and before the answer arrived.
"""
