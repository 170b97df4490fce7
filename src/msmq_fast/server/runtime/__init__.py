"""Services for every part of the server: event loop, clocks, disk, memory, logs, counters of refusals."""
