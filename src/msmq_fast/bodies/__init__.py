"""What message bodies and extensions hold, found out without running anything, and bodies for programs in
.NET and COM: `decode(body, body_type)` and `encode(value, formatter="xml")`.

The package imports the standard library alone. To add a format: a module with `decode` and `encode` that
raise BodyError, a kind in `kind.py` if its bytes can be told, and its lines in `formats.py`.
"""

from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.formats import FORMATTERS, Decoded, Encoded, decode, encode

__all__ = ["FORMATTERS", "BodyError", "Decoded", "Encoded", "decode", "encode"]
