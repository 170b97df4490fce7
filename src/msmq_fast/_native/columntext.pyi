"""Python does not use this module; see src/_native/columntext.pxd."""
