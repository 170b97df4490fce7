"""Spans of messages for OpenTelemetry: chosen from the event feed, sent to a collector as OTLP/JSON."""
