"""Nothing for Python: other native modules use it; see src/_native/removal.pxd."""
