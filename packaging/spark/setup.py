"""Stages the Spark side and what it imports from the sources of the repository, unless this is an sdist."""

import sys
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent
STORE = (
    "__init__",
    "decode",
    "pages",
    "paging",
    "redotail",
    "schema",
)  # what reads a store without its server
FOUND_BY_NAME = ("pyspark_msmq", "pyspark_msmq_pcap", "pyspark_msmq_store")

if (HERE.parent / "staging.py").is_file():
    sys.path.insert(0, str(HERE.parent))
    from staging import stage

    stage(
        HERE,
        ("bodies", "client", "packet", "protocol", "spark", "terminal"),
        (
            "msmq_fast/release.py",
            *(f"msmq_fast/store/{name}.py" for name in STORE),
            *(f"{name}.py" for name in FOUND_BY_NAME),
        ),
    )
setup(version=(HERE / "VERSION").read_text(encoding="ascii"), py_modules=FOUND_BY_NAME)
