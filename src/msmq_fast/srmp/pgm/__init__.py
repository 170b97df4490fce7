"""PGM, the reliable multicast that SRMP messages travel in ([MC-MQSRM] 2.1.3, RFC 3208)."""
