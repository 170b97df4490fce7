"""The RPC interfaces as tables, transcribed from their IDL."""
