"""HTTP/1.1 as SRMP uses it, in both directions ([MC-MQSRM] 2.1.1): engines without IO and thin asyncio adapters."""
