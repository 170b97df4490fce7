"""The pages of the console, one module for each subject.

To add a page: 1. write a function that takes a `Visit` and returns a response, and a template; 2. add the
function with its method and path to the PAGES of its module; 3. add the page to the navigation in
`templates/base.html` and to docs/how-to/console.md.
"""

from __future__ import annotations

from msmq_fast.console.pages import access, audit, batches, deadletters, messages, outgoing, overview, queues

__all__ = ["PAGES"]

PAGES = [
    *overview.PAGES,
    *queues.PAGES,
    *messages.PAGES,
    *batches.PAGES,
    *deadletters.PAGES,
    *outgoing.PAGES,
    *access.PAGES,
    *audit.PAGES,
]
