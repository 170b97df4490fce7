"""The commands: one module each, with its arguments, its behaviour and its help."""
