"""NDR 2.0 (C706 chapter 14) and NDR64 (MS-RPCE 2.2.5) from one description of each interface.

`types` has what an interface is declared with, `operations` its operations and what callers use; `plan`
compiles declarations for one syntax and byte order into codecs: `scalars`, `pointers`, `arrays`, `strings`,
`unions`, `structs`. Decoding checks everything that MS-RPCE 3.1.1.5.3 asks for at target level 6.0.
"""
