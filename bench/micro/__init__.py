"""Micro-benchmarks of the native modules: `python -m pytest bench --benchmark-only`.

Every benchmark handles MESSAGES messages a round; divide its time by that number.
"""

MESSAGES = 64
