"""Dependent clients (MS-MQMP): programs that have no queue manager of their own and use this one over RPC."""
