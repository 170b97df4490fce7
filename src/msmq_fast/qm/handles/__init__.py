"""Opening a queue by name, and what its handle does."""
