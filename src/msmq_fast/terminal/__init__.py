"""The code that all command lines of this package share: the parser, kinds of values, output and progress.

It imports nothing of the package except `protocol`, so that the command lines of `client` and `spark` may use
it.
"""
