"""Messages over HTTP and HTTPS, on sockets."""
