"""The code that all command lines of this package share: the parser, kinds of values, output and progress.

Of the package it imports only `protocol`, so that the command lines of `client` and `spark` may import it.
"""
