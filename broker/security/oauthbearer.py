"""OAUTHBEARER: a token that names its user, not signed (for tests) or signed with a key of a JWKS.

Times in tokens are compared with the cluster's clock, which a test can move. Signatures are checked by PyJWT.

Source: RFC 7628; KIP-255, KIP-768; Kafka's OAuthBearerSaslServer and its two validators.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from broker.config.config_values import ConfigError
from broker.security.mechanisms import RefusedError, Step

if TYPE_CHECKING:
    from broker.security.listener_settings import ListenerSettings
    from broker.security.mechanisms import Work

_INITIAL: Final = re.compile(r"n,(?:a=([^,]*))?,\x01((?:[^\x01]+\x01)*)\x01", re.DOTALL)
_EXTENSION: Final = re.compile(r"([A-Za-z]+)=([\x21-\x7E \t\r\n]+)")
_BEARER: Final = re.compile(r"bearer +([-_.~+/A-Za-z0-9]+=*)", re.IGNORECASE)
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LONGEST: Final = 1 << 16


class TokenError(Exception):
    """A token that is not accepted. `scope`: the scopes that it lacks."""

    def __init__(self, scope: str = "") -> None:
        self.scope = scope


class Tokens:
    """Accepts tokens by the settings of a listener.

    options   of the login module: unsecuredValidator...
    keys      the JWKS that was last read; None: tokens are not signed.
    Errors:   ConfigError.
    """

    def __init__(
        self,
        settings: ListenerSettings,
        mechanism: str,
        options: Mapping[str, str],
        now_ms: Callable[[], int],
        keys: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        self._now_ms = now_ms
        self._keys = keys
        if keys is None:
            self._user_claim = options.get("unsecuredValidatorPrincipalClaimName", "").strip() or "sub"
            self._scope_claim = options.get("unsecuredValidatorScopeClaimName", "").strip() or "scope"
            self._required = options.get("unsecuredValidatorRequiredScope", "").split()
            skew = options.get("unsecuredValidatorAllowableClockSkewMs", "").strip() or "0"
            if not skew.isdigit():
                raise ConfigError("unsecuredValidatorAllowableClockSkewMs", skew, "is no whole number")
            self._skew_ms = int(skew)
        else:
            self._user_claim = settings.text("sasl.oauthbearer.sub.claim.name", mechanism)
            self._scope_claim = settings.text("sasl.oauthbearer.scope.claim.name", mechanism)
            self._required = []
            self._skew_ms = 1000 * settings.number("sasl.oauthbearer.clock.skew.seconds", mechanism)
        self._audience = settings.words("sasl.oauthbearer.expected.audience", mechanism)
        self._issuer = settings.text("sasl.oauthbearer.expected.issuer", mechanism)

    def user(self, token: str) -> tuple[str, int]:
        """Whom a token names, and when it expires in Unix milliseconds. Errors: TokenError."""
        claims = _unsigned(token) if self._keys is None else self._signed(token)
        name, expires = claims.get(self._user_claim), claims.get("exp")
        if not isinstance(name, str) or not name.strip() or not _is_number(expires):
            raise TokenError
        now_ms = self._now_ms()
        expires_ms = int(expires * 1000)
        issued = claims.get("iat")
        # Kafka's validator of tokens that are not signed does not look at nbf
        for moment in (issued,) if self._keys is None else (issued, claims.get("nbf")):
            if moment is not None and (not _is_number(moment) or moment * 1000 > now_ms + self._skew_ms):
                raise TokenError
        if expires_ms <= now_ms - self._skew_ms or (issued is not None and expires <= issued):
            raise TokenError
        if self._keys is not None:
            self._check_origin(claims)
        scope = claims.get(self._scope_claim)
        if not isinstance(scope, str | list | None):
            raise TokenError
        held = scope.split() if isinstance(scope, str) else scope
        if self._required and not (isinstance(held, list) and set(self._required) <= set(held)):
            raise TokenError(" ".join(self._required))
        return name, expires_ms

    def _check_origin(self, claims: dict[str, Any]) -> None:
        audience = claims.get("aud", [])
        audience = [audience] if isinstance(audience, str) else audience
        if self._audience and not (isinstance(audience, list) and set(self._audience) & set(audience)):
            raise TokenError
        if self._issuer and claims.get("iss") != self._issuer:
            raise TokenError

    def _signed(self, token: str) -> dict[str, Any]:
        import jwt  # 30 ms, and only signed tokens need it

        assert self._keys is not None
        try:
            head = jwt.get_unverified_header(token)
            keys = jwt.PyJWKSet.from_dict(dict(self._keys())).keys
            key = next((each for each in keys if each.key_id == head.get("kid")), keys[0] if len(keys) == 1 else None)
            if key is None:
                raise TokenError
            options: Any = {"verify_" + name: False for name in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")}
            claims: dict[str, Any] = jwt.decode(token, key.key, algorithms=list(ALGORITHMS), options=options)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            raise TokenError from None
        return claims


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1 << 53


def _unsigned(token: str) -> dict[str, Any]:
    """The claims of a token with the algorithm "none". Errors: TokenError."""
    parts = token.split(".")
    if len(parts) != 3 or parts[2]:
        raise TokenError
    try:
        head, claims = (json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in parts[:2])
    except (ValueError, binascii.Error, RecursionError):
        raise TokenError from None
    if not isinstance(head, dict) or not isinstance(claims, dict) or head.get("alg") != "none":
        raise TokenError
    return claims


class OAuthBearer:
    """A token; after one that is not accepted the client gets its status, and answers with a byte of 1."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._refused = ""

    def work(self, token: bytes) -> Work | None:
        """See Exchange: a signature takes less than a millisecond."""
        return None

    def step(self, token: bytes) -> Step:
        """Take the client's first response. Errors: RefusedError."""
        if token == b"\x01" and self._refused:
            raise RefusedError(self._refused)
        self._refused = ""
        found = _INITIAL.fullmatch(token.decode("utf-8", "replace")) if len(token) <= LONGEST else None
        if found is None:
            raise RefusedError("")
        asked, pairs = found.groups()
        values = {}
        for pair in filter(None, pairs.split("\x01")):
            if (extension := _EXTENSION.fullmatch(pair)) is None:
                raise RefusedError("")
            values[extension[1]] = extension[2]
        if (bearer := _BEARER.fullmatch(values.get("auth", ""))) is None:
            raise RefusedError("")
        try:
            user, expires_ms = self._tokens.user(bearer[1])
        except TokenError as error:
            status = (
                {"status": "insufficient_scope", "scope": error.scope} if error.scope else {"status": "invalid_token"}
            )
            self._refused = json.dumps(status, separators=(", ", ":"))
            return Step(self._refused.encode())
        if asked and asked != user:
            raise RefusedError(
                f"Authentication failed: Client requested an authorization id ({asked:.249}) that is different from the"
                f" token's principal name ({user:.249})"
            )
        return Step(b"", user, expires_ms)
