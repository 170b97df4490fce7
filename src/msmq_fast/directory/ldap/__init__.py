"""Active Directory as the directory of a queue manager (MS-MQDSSM).

`schema` maps attributes, `entries` maps whole objects, `interface` says what a connection can do, `domain`
has the operations on the domain, which block, and `provider` answers the queue manager from a copy of the
domain's objects. `link` is the connection by libldap, and the only module here that needs python-ldap.
"""
