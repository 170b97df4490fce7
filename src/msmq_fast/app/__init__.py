"""The application protocol: how programs on this host create queues, send and receive."""
