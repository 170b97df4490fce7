"""Answers calls after a change has become durable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from msmq_fast.protocol.errors import MSMQError
from msmq_fast.rpc.faults import RpcFault

if TYPE_CHECKING:
    from collections.abc import Callable

    from msmq_fast.rpc.call import Call
    from msmq_fast.store.completion import Completion

__all__ = ["when"]

R = TypeVar("R")


def when(
    done: Completion[Any],
    failed: Callable[[Call, Any, int], Any],
    call: Call,
    args: Any,
    results: R,
    stub: bytes = b"",
) -> R | None:
    """Returns the value that a service method must return if its call ends with `results` when `done` is
    resolved.

    This is `results` if `done` is already resolved, otherwise None. `failed` is Service.failed. `stub` is the
    encoded form of `results` if it was encoded before, otherwise empty. Raises the error of `done` if it has
    already failed.
    """
    if done.done:
        done.result()
        return results

    def ended(done: Completion[Any]) -> None:
        error = done.exception()
        if error is None:
            if stub:
                call.reply_stub(stub)
            else:
                call.reply(results)
            return
        code = error.code if isinstance(error, MSMQError) else MSMQError.default_code
        try:
            call.reply(failed(call, args, code))
        except RpcFault as fault:
            call.fault(fault.status)

    done.add_done_callback(ended)
    return None
