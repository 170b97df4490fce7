"""The configuration: one module for each section, the kinds of values, and how it is loaded."""
