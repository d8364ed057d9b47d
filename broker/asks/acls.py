"""Asks about ACLs, and the words in which kafka-acls and files of `--load` tell them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.asks.ask import Ask, Controller, Question, check
from protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)

if TYPE_CHECKING:
    from protocol.messages.acls import (
        AclCreationResult,
        CreateAclsResponse,
        DeleteAclsFilterResult,
        DeleteAclsResponse,
        DescribeAclsResource,
        DescribeAclsResponse,
    )

VERSION: Final = 3
ANY_KIND: Final = 1  # what a filter takes for all


def describe(
    kind: int = ANY_KIND, name: str | None = None, pattern: int = ANY_KIND, principal: str | None = None
) -> Ask[list[DescribeAclsResource]]:
    """The ACLs that match, by resource; all unless told. Errors: AnswerError."""
    request = DescribeAclsRequest(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=pattern,
        principal_filter=principal,
        host_filter=None,
        operation=ANY_KIND,
        permission_type=ANY_KIND,
    )
    answer: DescribeAclsResponse = yield Question(request, VERSION, Controller())
    check("ACLs", answer.error_code, answer.error_message)
    return answer.resources


def create(creations: list[AclCreation]) -> Ask[list[AclCreationResult]]:
    """Add ACLs; a row each."""
    answer: CreateAclsResponse = yield Question(CreateAclsRequest(creations=creations), VERSION, Controller())
    return answer.results


def delete(wanted: list[DeleteAclsFilter]) -> Ask[list[DeleteAclsFilterResult]]:
    """Remove the ACLs that match; a row each filter."""
    answer: DeleteAclsResponse = yield Question(DeleteAclsRequest(filters=wanted), VERSION, Controller())
    return answer.filter_results
