"""Which test notices that a setting of TLS, SASL, authorization or limits is ignored, by its file and name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# A file of tests, a test in it that fails when a setting is ignored, and the keys that it is about.
SECURITY_NOTICED_BY: Final[Mapping[str, Mapping[str, str]]] = {
    "tests/unit/authorization/test_authorization.py": {
        "test_authorizer_that_cannot_be_does_not_start": """
            authorizer.class.name
        """,
    },
    "tests/unit/security/test_delegation_tokens.py": {
        "test_client_authenticates_by_a_token_as_its_owner": """
            delegation.token.secret.key
        """,
        "test_interval_of_the_look_is_set": """
            delegation.token.expiry.check.interval.ms
        """,
        "test_settings_bound_the_life_of_a_token": """
            delegation.token.expiry.time.ms delegation.token.max.lifetime.ms
        """,
    },
    "tests/unit/security/test_listener_settings.py": {
        "test_signed_tokens_of_any_origin_are_taken_only_where_that_is_said": """
            sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
        """,
        "test_each_listener_has_its_own_users": """
            sasl.jaas.config
        """,
    },
    "tests/unit/security/test_principals.py": {
        "test_rules_make_users": """
            ssl.principal.mapping.rules
        """,
    },
    "tests/unit/quotas/test_quotas_obeyed.py": {
        "test_rate_is_over_the_windows_that_are_set": """
            quota.window.num quota.window.size.seconds
        """,
        "test_topics_beyond_the_quota_of_changes": """
            controller.quota.window.num controller.quota.window.size.seconds
        """,
    },
    "tests/unit/quotas/test_connection_quotas.py": {
        "test_connections_of_one_address_are_limited": """
            max.connections.per.ip max.connections.per.ip.overrides
        """,
        "test_connections_that_come_too_fast_are_slowed_down": """
            max.connection.creation.rate
        """,
    },
    "tests/unit/security/test_reauthentication.py": {
        "test_reauthentication_in_time_keeps_the_connection": """
            connections.max.reauth.ms
        """,
    },
    "tests/unit/security/test_sasl.py": {
        "test_failed_client_waits_for_its_answer": """
            connection.failed.authentication.delay.ms
        """,
        "test_request_above_the_limit_closes_the_connection": """
            sasl.server.max.receive.size
        """,
    },
    "tests/unit/security/test_sasl_mechanisms.py": {
        "test_mechanism_that_is_not_enabled_is_refused_with_those_that_are": """
            sasl.enabled.mechanisms
        """,
    },
    "tests/unit/security/test_signed_tokens.py": {
        "test_key_set_is_read_again": """
            sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.url
        """,
        "test_settings_decide_over_a_token": """
            sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
            sasl.oauthbearer.expected.issuer sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
        """,
    },
    "tests/unit/shell/test_tls.py": {
        "test_bytes_pass_both_ways": """
            ssl.enabled.protocols ssl.keystore.certificate.chain ssl.keystore.key
        """,
        "test_client_certificate_is_asked_for_as_set": """
            ssl.client.auth ssl.truststore.certificates
        """,
    },
    "tests/unit/shell/test_tls_stores.py": {
        "test_cipher_suite_is_chosen_by_either_name": """
            ssl.cipher.suites
        """,
        "test_key_and_trust_are_read_from_each_format": """
            ssl.key.password ssl.keystore.location ssl.keystore.password ssl.keystore.type
            ssl.truststore.location ssl.truststore.password ssl.truststore.type
        """,
    },
}
