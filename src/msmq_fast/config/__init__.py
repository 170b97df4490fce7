"""The configuration: one module for each section, the kinds of values, and the loader."""
