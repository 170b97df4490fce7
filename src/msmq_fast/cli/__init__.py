"""The command line: parses arguments and calls the server or the client."""
