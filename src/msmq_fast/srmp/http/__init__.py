"""HTTP/1.1 as SRMP uses it ([MC-MQSRM] 2.1.1), both sides: engines without IO, thin asyncio adapters."""
