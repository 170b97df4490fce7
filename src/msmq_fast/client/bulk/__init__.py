"""Client of the bulk API: reads and writes messages, and reads events, as Arrow batches. Rows need
pyarrow.
"""
