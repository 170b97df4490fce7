"""The admin port: health, Prometheus metrics, and a read-only JSON API."""
