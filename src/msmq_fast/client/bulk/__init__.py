"""Client of the bulk API: messages and events of a queue manager as Arrow batches. Needs pyarrow for rows."""
