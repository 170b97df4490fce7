"""The composition root: assembles a server from its configuration, and handles its lifecycle and signals.
Opens the sockets and provides the clocks for the other packages.
"""
