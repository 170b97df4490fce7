"""Types of the undo log of units of work; see src/_native/undo.pxd."""

class UndoLog:
    def __len__(self) -> int: ...
