"""Security descriptors, access checks, principals, audit (MS-DTYP 2.4 and 2.5, MS-MQMQ 2.2.23 … 2.2.27)."""
