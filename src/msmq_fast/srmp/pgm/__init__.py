"""PGM, the reliable multicast protocol that carries SRMP messages ([MC-MQSRM] 2.1.3, RFC 3208)."""
