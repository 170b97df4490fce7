"""The management API: operations over HTTP and for the web console, as a client of the queue manager."""
