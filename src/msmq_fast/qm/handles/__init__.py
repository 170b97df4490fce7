"""Opening a queue by name, and the operations on its handle."""
