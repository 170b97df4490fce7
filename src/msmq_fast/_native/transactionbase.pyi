"""Types of the operations of a transaction; see src/_native/transactionbase.pyx."""

ROW_PREFIX: bytes

class TransactionBroken(Exception):
    status: int
    def __init__(self, status: int) -> None: ...

def row_key(identifier: bytes, row: int) -> bytes: ...
