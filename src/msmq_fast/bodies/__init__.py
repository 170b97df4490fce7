"""What message bodies and extensions hold, found out without running anything: no PySpark."""
