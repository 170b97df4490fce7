"""Dependent clients (MS-MQMP): programs without a queue manager of their own, that use this one by RPC."""
