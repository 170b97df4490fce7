"""Security providers of the RPC runtime: NTLM, Kerberos and SPNEGO, for both sides."""
