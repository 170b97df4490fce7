"""Native parts, built from src/_native."""
