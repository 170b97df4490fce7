"""Nothing for Python: other native modules use it; see src/_native/transactionend.pxd."""
