"""Encodes and decodes NDR 2.0 (C706 chapter 14) and NDR64 (MS-RPCE 2.2.5) from one description of each
interface.

`types` has the types with which an interface is declared, `operations` the declarations of operations and the
functions that encode and decode them for services and clients. `plan` compiles declarations, for one transfer
syntax and byte order, into codecs: `scalars`, `pointers`, `arrays`, `strings`, `unions`, `structs`. Decoding
checks everything that MS-RPCE 3.1.1.5.3 requires at target level 6.0.
"""
