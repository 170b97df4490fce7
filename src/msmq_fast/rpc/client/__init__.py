"""The client side: reading queues of other computers (MS-MQRR 3.2, MS-MQQP 3.2, docs/how-to/remote-read.md).

`connection` and `binding` are the client of the runtime, without IO, `endpoint` asks endpoint mappers.
`opening` opens a queue at another computer, by `remoteread` or, where that is not served, `qm2qm`. `reader`
and `subscription` are what the front ends read from; `settling` finds out what became of a message when a
connection ends at the wrong moment.
"""
