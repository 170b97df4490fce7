"""The pages of the console, one module for each subject.

To add a page: 1. write a function that takes a `Visit` and returns a response, and a template; 2. add the
function with its method and path to the PAGES of its module; 3. add the page to the navigation in
`templates/base.html` and to docs/how-to/console.md; 4. if the page changes by itself, mark in its template
what does (live.py), and add its path to LIVE.
"""

from __future__ import annotations

from msmq_fast.console.pages import (
    access,
    audit,
    batches,
    configuration,
    deadletters,
    definitions,
    keys,
    maintenance,
    messages,
    outgoing,
    overview,
    queues,
    route,
    send,
    sessions,
    trace,
    transactions,
    users,
)

__all__ = ["LIVE", "PAGES"]

PAGES = [
    *overview.PAGES,
    *queues.PAGES,
    *messages.PAGES,
    *batches.PAGES,
    *deadletters.PAGES,
    *outgoing.PAGES,
    *send.PAGES,
    *trace.PAGES,
    *route.PAGES,
    *sessions.PAGES,
    *transactions.PAGES,
    *configuration.PAGES,
    *maintenance.PAGES,
    *definitions.PAGES,
    *access.PAGES,
    *users.PAGES,
    *keys.PAGES,
    *audit.PAGES,
]

LIVE = frozenset(
    {
        "/overview",
        "/queues",
        "/queue",
        "/outgoing",
        "/outgoing/queue",
        "/sessions",
        "/transactions",
        "/maintenance",
    }
)
"""The paths of the pages that are kept up to date while they are open."""
