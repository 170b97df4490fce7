"""Events with many listeners."""

from msmq_fast.signals import Signal


def test_all_listeners_are_called_in_the_order_of_connecting() -> None:
    told: list[tuple[str, int]] = []
    signal: Signal[[int]] = Signal()
    signal(1)
    signal.connect(lambda number: told.append(("first", number)))
    signal.connect(lambda number: told.append(("second", number)))
    signal(2)
    assert told == [("first", 2), ("second", 2)]
