"""The admin port: health, metrics, views and the bulk API."""
