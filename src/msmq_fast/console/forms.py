"""Limits on the forms that browsers post.

aiohttp refuses a form with more than 1,000 fields, but first it reads the form, which may be as large as the
largest message. Callers without a session therefore send small forms only.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

__all__ = ["SMALL", "is_small"]

SMALL: Final = 16 << 10
"""Bytes of a form that needs no session: a name, a secret and the path of a page."""

_FORM: Final = "application/x-www-form-urlencoded"


def is_small(request: web.Request) -> bool:
    """Whether the body has at most `SMALL` bytes, by its Content-Length, and is a form without files."""
    if not request.can_read_body:
        return True
    size = request.content_length
    return size is not None and size <= SMALL and request.content_type == _FORM
