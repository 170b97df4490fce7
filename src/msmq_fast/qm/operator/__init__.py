"""What an operator does: queues come and go, messages are moved, exported, imported and sent again."""
