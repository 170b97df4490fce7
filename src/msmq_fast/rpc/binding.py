"""Negotiates the presentation contexts and bind-time features that a bind or alter_context proposes
(MS-RPCE 3.3.1.5.3, 3.3.1.5.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msmq_fast.rpc.interface import Interface, PresentationContext
from msmq_fast.rpc.pdu import ContextElement, ContextResult, Result, ResultReason
from msmq_fast.rpc.syntaxes import NDR, NDR64, BindTimeFeatures, SyntaxId

__all__ = ["NegotiationError", "negotiate"]

_NO_INTERFACE = ContextResult(Result.PROVIDER_REJECTION, ResultReason.ABSTRACT_SYNTAX_NOT_SUPPORTED)
_NO_TRANSFER = ContextResult(Result.PROVIDER_REJECTION, ResultReason.TRANSFER_SYNTAXES_NOT_SUPPORTED)


class NegotiationError(Exception):
    """Raised if a whole proposal violates the protocol; the text describes the violation."""


def negotiate(
    elements: Sequence[ContextElement],
    existing: Mapping[int, PresentationContext],
    find: Callable[[SyntaxId], Interface | None],
    *,
    features: bool,
) -> tuple[tuple[ContextResult, ...], dict[int, PresentationContext], BindTimeFeatures | None]:
    """Returns (results, accepted contexts, common features).

    The results are in the order of `elements`. The accepted contexts are mapped from their identifiers. The
    common features are the bind-time features that both sides support; None if the client offered none.

    `features` is whether the client may offer features: True for a bind. If several elements propose the same
    interface, only one of them is accepted: the one with NDR64, otherwise the first one with NDR. Raises
    NegotiationError.
    """
    results: list[ContextResult] = []
    accepted: dict[int, PresentationContext] = {}
    settled: set[SyntaxId] = set()
    prefers = {element.abstract for element in elements if NDR64 in element.transfers}
    agreed: BindTimeFeatures | None = None
    if not elements:
        raise NegotiationError("the presentation context is missing")
    for element in elements:
        if not element.transfers:
            raise NegotiationError("a presentation context has no transfer syntaxes")
        offered = BindTimeFeatures.offered(element.transfers[0]) if features else None
        if offered is not None:
            if agreed is not None:
                raise NegotiationError("the bind-time features are offered twice")
            agreed = offered
            results.append(ContextResult(Result.NEGOTIATE_ACK, offered))
            continue
        interface = find(element.abstract)
        if interface is None:
            results.append(_NO_INTERFACE)
            continue
        transfer = next((syntax for syntax in (NDR64, NDR) if syntax in element.transfers), None)
        if transfer is None:
            results.append(_NO_TRANSFER)
            continue
        context = interface.presented[transfer]
        if existing.get(element.id, context) is not context:
            raise NegotiationError("a presentation context is redefined")
        if element.abstract in settled or (element.abstract in prefers and transfer != NDR64):
            results.append(_NO_TRANSFER)
            continue
        settled.add(element.abstract)
        accepted[element.id] = context
        results.append(ContextResult(Result.ACCEPTANCE, ResultReason.NOT_SPECIFIED, transfer))
    return tuple(results), accepted, agreed
