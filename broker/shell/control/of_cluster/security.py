"""Routes of users, certificates and ACLs of a cluster, and of the settings that its clients need."""

from __future__ import annotations

from typing import Final

from broker.shell.control.routes import Optional_, Route

ACL: Final = {
    "principal": str,
    "operation": str,
    "resource": str,
    "name": str,
    "pattern": str,
    "permission": str,
    "host": str,
}
USERS: Final = {"users": [str], "passwords": {"*": str}}  # of those that were named or added here
NEW_ACL: Final = {
    **ACL,
    "pattern": Optional_(str),
    "permission": Optional_(str),
    "host": Optional_(str),
}

INSECURE: Final = {409: "the cluster was not made with security"}
NO_AUTHORIZER: Final = {409: "the cluster has no authorizer, or its reason"}

ROUTES: Final = (
    Route(
        "GET",
        "/security",
        "security:client_settings",
        "How a client connects: its settings in its own words, and the files that they name, in base64.",
        query={"client": "kafka-python, aiokafka, confluent, java, spark, franz-go or kafkajs", "user": "who it is"},
        errors={404: "no such client or user"},
    ),
    Route(
        "POST",
        "/users",
        "security:add_user",
        "Add a user, or give it another password; with mtls, its certificate is made.",
        errors=INSECURE,
        body={"name": str, "password": Optional_(str)},
        example={"name": "carol", "password": "pencil"},
    ),
    Route("GET", "/users", "security:list_users", "The users."),
    Route("DELETE", "/users/{user}", "security:remove_user", "Remove a user.", errors=INSECURE),
    Route("GET", "/acls", "acls:list_acls", "The ACLs."),
    Route(
        "POST",
        "/acls",
        "acls:add_acls",
        "Make ACLs, of a cluster with an authorizer, in the words of kafka-acls.",
        errors=NO_AUTHORIZER,
        body={"acls": [NEW_ACL]},
        example={"acls": [{"principal": "User:alice", "operation": "read", "resource": "topic", "name": "orders"}]},
    ),
    Route(
        "DELETE",
        "/acls",
        "acls:remove_acls",
        "Remove the ACLs that match all that is given; without parameters all of them.",
        query=dict.fromkeys(ACL, "as in an ACL"),
    ),
    Route(
        "POST",
        "/certificates",
        "security:change_certificates",
        'Change certificates: "rotate" makes all again, "rotate-authority" by an authority that no client trusts yet,'
        ' "expire" one ("server", or a user), "issue" a good one, for "hosts" if given.',
        errors={404: "no such certificate", 409: "the cluster was not made with certificates"},
        body={"action": str, "name": Optional_(str), "hosts": Optional_([str])},
        example={"action": "rotate"},
    ),
)
