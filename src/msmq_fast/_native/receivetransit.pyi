"""Nothing for Python; see src/_native/receivetransit.pxd."""
