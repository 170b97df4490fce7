"""Nothing for Python; see src/_native/columntext.pxd."""
