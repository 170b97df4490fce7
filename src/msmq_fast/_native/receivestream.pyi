"""Nothing for Python; see src/_native/receivestream.pxd."""
