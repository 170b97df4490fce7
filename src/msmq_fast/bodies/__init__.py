"""Codecs for message bodies and extensions of .NET and COM programs: `decode(body, body_type)` and
`encode(value, formatter="xml")`. Decoding never executes code from a body.

The package imports only the standard library.

To add a format: 1. write a module with `decode` and `encode` that raise BodyError and bound the size of their
results;
2. give it a kind in `kind.py` if its bytes can be recognised; 3. add its lines to `formats.py`; 4. put
   goldens of the program that writes it into tests/bodies, and seeds into tests/faults/bodies_inputs.py.
"""

from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.formats import FORMATTERS, Decoded, Encoded, decode, encode

__all__ = ["FORMATTERS", "BodyError", "Decoded", "Encoded", "decode", "encode"]
