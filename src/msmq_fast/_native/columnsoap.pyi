"""Nothing for Python; see src/_native/columnsoap.pxd."""
