"""Tokens that are signed with a key of a JWKS: what is accepted, and where the keys come from."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from broker.config.settings import BrokerConfig, ConfigError
from broker.security.listener_settings import ListenerSettings
from broker.security.oauthbearer import TokenError, Tokens
from broker.shell.key_sets import KeySets, read_key_set

NOW_S = 1_700_000_000
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
KEYS = {
    "keys": [
        {**jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True), "kid": "r"},
        {**jwt.algorithms.ECAlgorithm.to_jwk(EC.public_key(), as_dict=True), "kid": "e"},
    ]
}
CLAIMS = {"sub": "dora", "exp": NOW_S + 60, "iat": NOW_S - 1}


def tokens(keys: Any = KEYS, **settings: str) -> Tokens:
    config = BrokerConfig.load({f"sasl.oauthbearer.{key.replace('_', '.')}": text for key, text in settings.items()})
    return Tokens(ListenerSettings(config, "A"), "OAUTHBEARER", {}, lambda: NOW_S * 1000, lambda: keys)


def signed(key: Any = RSA, algorithm: str = "RS256", kid: str | None = "r", **claims: Any) -> str:
    return jwt.encode({**CLAIMS, **claims}, key, algorithm, headers={"kid": kid} if kid else None)


@pytest.mark.parametrize(("key", "algorithm", "kid"), [(RSA, "RS256", "r"), (RSA, "PS512", "r"), (EC, "ES256", "e")])
def test_token_of_a_key_of_the_set_is_accepted(key, algorithm, kid):
    assert tokens().user(signed(key, algorithm, kid)) == ("dora", (NOW_S + 60) * 1000)


@pytest.mark.parametrize(
    "token",
    [
        signed(rsa.generate_private_key(65537, 2048)),
        signed(EC, "ES256", "r"),
        signed(kid="unknown"),
        signed(kid=None),
        signed()[:-9] + "AAAAAAAAA",
        signed("x" * 32, "HS256"),
        signed("", "none"),
        "a.b",
        "a.b.c",
        "",
    ],
)
def test_token_with_another_signature_is_refused(token):
    with pytest.raises(TokenError):
        tokens().user(token)


@pytest.mark.parametrize("moment", [60, "x"])
def test_signed_token_is_refused_before_its_nbf(moment):
    assert tokens().user(signed(nbf=NOW_S - 1))[0] == "dora"
    with pytest.raises(TokenError):
        tokens().user(signed(nbf=NOW_S + moment if isinstance(moment, int) else moment))


def test_public_key_is_no_secret_for_a_signature():
    """The trick of signing with the text of a public key by HS256."""
    for key in KEYS["keys"]:
        head, body, _ = jwt.encode(CLAIMS, "x" * 32, "HS256", headers={"kid": key["kid"]}).split(".")
        mac = hmac.digest(json.dumps(key).encode(), f"{head}.{body}".encode(), "sha256")
        forged = f"{head}.{body}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
        with pytest.raises(TokenError):
            tokens().user(forged)


@pytest.mark.parametrize(
    ("settings", "good", "bad"),
    [
        ({"clock_skew_seconds": "5"}, {"exp": NOW_S - 4}, {"exp": NOW_S - 6}),
        ({"expected_audience": "x,y"}, {"aud": ["z", "y"]}, {"aud": "z"}),
        ({"expected_issuer": "https://i"}, {"iss": "https://i"}, {"iss": "https://j"}),
        ({"sub_claim_name": "name"}, {"name": "dora"}, {"sub": "dora"}),
        ({"scope_claim_name": "scp"}, {"scp": "a b"}, {"exp": NOW_S - 60}),
    ],
)
def test_settings_decide_over_a_token(settings, good, bad):
    extra = {"iat": NOW_S - 100}
    assert tokens(**settings).user(signed(**extra, **good))[0] == "dora"
    with pytest.raises(TokenError):
        tokens(**settings).user(signed(**extra, **bad))


async def test_key_set_is_read_again(tmp_path):
    path = tmp_path / "jwks.json"
    path.write_text('{"keys": []}')
    sets = KeySets()
    url = path.as_uri()
    await sets.start({url: 1})
    with pytest.raises(TokenError):
        tokens(sets.found[url]).user(signed())
    path.write_text(json.dumps(KEYS))
    async with asyncio.timeout(60):
        while not sets.found[url]["keys"]:
            await asyncio.sleep(0)
    assert tokens(sets.found[url]).user(signed())[0] == "dora"
    sets.close()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": 1}', " " * (1 << 20) + "{}x"])
async def test_file_that_is_no_key_set_does_not_start(tmp_path, text):
    path = tmp_path / "jwks.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="jwks"):
        await KeySets().start({path.as_uri(): 1000})


def test_url_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="a URL begins"):
        read_key_set("ftp://127.0.0.1/x")
