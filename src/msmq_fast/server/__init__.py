"""The composition root: configuration, listeners, lifecycle, signals; opens all sockets, reads all clocks."""
