"""The event feed and its subscriptions."""
