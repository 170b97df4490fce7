"""The audit: administrative acts, denials and log-ons, in a ring in the store."""
