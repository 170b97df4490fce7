"""How a query reads: `keep` (messages stay), `remove` (messages are received), `events` (the event feed)."""
