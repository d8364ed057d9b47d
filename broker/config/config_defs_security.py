"""Config keys of brokers for TLS, SASL, authorization and tokens; the rows are as in config_defs_broker.py.

Each can be set for one listener as `listener.name.NAME.KEY`, and those of SASL for a mechanism of it as
`listener.name.NAME.MECHANISM.KEY` (security/listener_settings.py).
"""

from __future__ import annotations

from broker.config.config_defs import Row

# A row is one to three lines, not one a column.
# fmt: off
SECURITY_ROWS: tuple[Row, ...] = (
    ("ssl.cipher.suites", "LIST", "", None, "", "Cipher suites, by their names in OpenSSL or in Java; empty: all."),
    ("ssl.client.auth", "STRING", "none", ("required", "requested", "none"), "",
     "Whether clients must, may or need not show a certificate."),
    ("ssl.enabled.protocols", "LIST", "TLSv1.2,TLSv1.3", ("TLSv1.2", "TLSv1.3"), "", "Versions of TLS."),
    ("ssl.key.password", "PASSWORD", None, None, "", "Password of the private key."),
    ("ssl.keystore.certificate.chain", "PASSWORD", None, None, "", "The broker's certificates as PEM."),
    ("ssl.keystore.key", "PASSWORD", None, None, "", "The broker's private key as PEM."),
    ("ssl.keystore.location", "STRING", None, None, "", "File with the broker's private key and certificates."),
    ("ssl.keystore.password", "PASSWORD", None, None, "", "Password of that file."),
    ("ssl.keystore.type", "STRING", "JKS", None, "", "JKS, PKCS12 or PEM."),
    ("ssl.principal.mapping.rules", "STRING", "DEFAULT", None, "",
     "How the name in a client's certificate becomes a user: RULE:pattern/replacement/[LU], or DEFAULT."),
    ("ssl.truststore.certificates", "PASSWORD", None, None, "", "Certificates that are trusted, as PEM."),
    ("ssl.truststore.location", "STRING", None, None, "", "File with the certificates that are trusted."),
    ("ssl.truststore.password", "PASSWORD", None, None, "", "Password of that file."),
    ("ssl.truststore.type", "STRING", "JKS", None, "", "JKS, PKCS12 or PEM."),
    ("delegation.token.expiry.check.interval.ms", "LONG", "3600000", (1, None), "",
     "Time between two looks for delegation tokens that have expired."),
    ("delegation.token.expiry.time.ms", "LONG", "86400000", (1, None), "",
     "Time after which a delegation token expires that is not renewed."),
    ("delegation.token.max.lifetime.ms", "LONG", "604800000", (1, None), "",
     "Time after which a delegation token cannot be renewed any more."),
    ("delegation.token.secret.key", "PASSWORD", None, None, "",
     "Key of the delegation tokens; without it there are none."),
    ("java.security.auth.login.config", "STRING", None, None, "",
     "File with the login modules of listeners, as Java's property of that name gives it to Kafka."),
    ("sasl.jaas.config", "PASSWORD", None, None, "", "Login module of a mechanism, with the users of PLAIN."),
    ("sasl.server.max.receive.size", "INT", "524288", (0, None), "",
     "Largest request before a client has authenticated."),
    ("sasl.oauthbearer.allow.unverified.audience", "BOOLEAN", "false", None, "",
     "Whether signed tokens are taken without sasl.oauthbearer.expected.audience."),
    ("sasl.oauthbearer.allow.unverified.issuer", "BOOLEAN", "false", None, "",
     "Whether signed tokens are taken without sasl.oauthbearer.expected.issuer."),
    ("sasl.oauthbearer.clock.skew.seconds", "INT", "30", (0, None), "", "Tolerance for times in tokens."),
    ("sasl.oauthbearer.expected.audience", "LIST", "", None, "", "A token must name one of these audiences."),
    ("sasl.oauthbearer.expected.issuer", "STRING", None, None, "", "A token must come from this issuer."),
    ("sasl.oauthbearer.jwks.endpoint.refresh.ms", "LONG", "3600000", (1, None), "",
     "Time between two readings of the keys."),
    ("sasl.oauthbearer.jwks.endpoint.url", "STRING", None, None, "",
     "Where the keys are that tokens are signed with; without it tokens are not signed, which is for tests."),
    ("sasl.oauthbearer.scope.claim.name", "STRING", "scope", None, "", "Claim of the scopes."),
    ("sasl.oauthbearer.sub.claim.name", "STRING", "sub", None, "", "Claim of the user's name."),
)
# fmt: on
