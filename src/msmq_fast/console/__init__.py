"""The web console: pages for operators on the admin port, rendered on the server."""
