"""The operations of the RPC interfaces, with types: made by tools/rpcstubs.py from rpc/idl."""
