"""SRMP: messages as SOAP over HTTP, HTTPS and PGM ([MC-MQSRM])."""
