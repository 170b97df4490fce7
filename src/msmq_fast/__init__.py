"""The queue manager msmq-fast."""
