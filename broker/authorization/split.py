"""Takes out of a request what is not allowed, and puts its refusal into the response."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import TYPE_CHECKING, Any, TypeAlias

from broker.wire.errors import error_response
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.base.context import Context

Merge: TypeAlias = Callable[[Any], Any]  # the handler's response -> the response with what was refused


def partition(items: Iterable[Any], is_allowed: Callable[[Any], bool]) -> tuple[list[Any], list[Any]]:
    """The items that are allowed, and the others."""
    kept: list[Any] = []
    refused: list[Any] = []
    for item in items:
        (kept if is_allowed(item) else refused).append(item)
    return kept, refused


def refuse_parts(
    ctx: Context,
    request: Any,
    field: str,
    refused: list[Any],
    answered: str,
    code: ErrorCode,
    message: str | None = None,
) -> Merge | None:
    """Refuse some of what a list of the request names, as the whole request would be refused. None: nothing is.

    field     the list in the request, from which `refused` has been taken out.
    answered  the list in the response.
    """
    if not refused:
        return None
    other = copy(request)
    setattr(other, field, refused)
    refusal = getattr(error_response(other, request.API_KEY, ctx.api_version, code, message), answered)
    return appending(answered, refusal)


def appending(answered: str, refusal: list[Any]) -> Merge:
    """Adds entries to a list of the response."""

    def merge(response: Any) -> Any:
        if response is not None:
            setattr(response, answered, [*(getattr(response, answered) or ()), *refusal])
        return response

    return merge


def chain(*merges: Merge | None) -> Merge | None:
    """One after the other."""
    found = [merge for merge in merges if merge is not None]

    def merge(response: Any) -> Any:
        for each in found:
            response = each(response)
        return response

    return merge if found else None
