"""The composition root: configuration, listeners, lifecycle, signals. The only room that opens sockets and reads clocks."""
