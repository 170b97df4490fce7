"""What every part of the server runs on: the loop, clocks, disk, memory, logs, counts of refusals."""
