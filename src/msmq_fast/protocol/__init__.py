"""Definitions that the server and every client share: frames, errors, columns and exit codes.

Pure Python. Nothing here imports another part of the package.
"""
