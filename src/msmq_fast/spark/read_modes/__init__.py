"""The read modes of a query: `keep` (messages stay), `remove` (messages are received), `events` (the event
feed).
"""
