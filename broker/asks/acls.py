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


def describe() -> Ask[list[DescribeAclsResource]]:
    """All ACLs, by resource. Errors: AnswerError."""
    request = DescribeAclsRequest(
        resource_type_filter=ANY_KIND,
        resource_name_filter=None,
        pattern_type_filter=ANY_KIND,
        principal_filter=None,
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


def delete(wanted: DeleteAclsFilter) -> Ask[DeleteAclsFilterResult]:
    """Remove the ACLs that match."""
    answer: DeleteAclsResponse = yield Question(DeleteAclsRequest(filters=[wanted]), VERSION, Controller())
    return answer.filter_results[0]
