"""What every command line of this package shares: the parser, its kinds of values, output and progress.

It imports nothing of the package but the protocol room, so the command lines of the islands may use it.
"""
