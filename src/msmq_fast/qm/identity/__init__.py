"""Certificates, key pairs and signatures of the queue manager and its users."""
