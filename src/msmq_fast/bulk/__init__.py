"""The bulk API: queues and the event feed as Arrow streams over HTTP, leases, staged publishing."""
