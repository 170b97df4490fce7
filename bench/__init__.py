"""Load generators and measurements: `python -m bench --help`."""
