"""The commands: one module each, with its grammar, its behaviour and its help."""
