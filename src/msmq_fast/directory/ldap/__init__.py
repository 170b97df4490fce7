"""Active Directory as the directory of a queue manager (MS-MQDSSM). Needs python-ldap.

`schema` maps attributes, `entries` maps whole objects, `link` is the connection, `domain` has the operations
on the domain, which block, and `provider` answers the queue manager from a copy of the domain's objects.
"""
