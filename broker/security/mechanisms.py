"""Mechanisms of SASL, a class each: a client's token goes in, a challenge, a principal or a refusal comes out.

An exchange is one attempt. It has no socket and reads no clock but the one it is given. Wrong credentials cost the same
work whether the user exists or not: a user that is not there has made-up credentials, the same at each attempt.

Source: RFC 4616 (PLAIN), RFC 5802 (SCRAM); the words of refusals are those of Kafka.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from broker.security.listener_settings import SCRAM

if TYPE_CHECKING:
    from storage.files.env import Rng

DIGESTS: Final = {1: "sha256", 2: "sha512"}  # by the number of a SCRAM mechanism in Kafka's records
ITERATIONS: Final = 4096  # of new credentials, and of made-up ones
LONGEST_SALT: Final = 1024  # bytes, of made-up credentials
_SALT_KINDS: Final = (b"0123456789abcdef", b"0123456789abcdefghijklmnopqrstuvwxyz", bytes(range(0x21, 0x7F)))
LONGEST: Final = 4096  # characters of a client's first message
# A client's first message. Source: Kafka's ScramMessages, which takes ASCII alone.
_NAME: Final = r"(?:[\x01-\x2B\x2D-\x3C\x3E-\x7F]|=2C|=3D)+"
_FIRST: Final = re.compile(
    rf"(n,(?:a=({_NAME}))?,)(n=({_NAME}),r=([\x21-\x2B\x2D-\x7E]+)((?:,[A-Za-z]+=[\x01-\x2B\x2D-\x7F]+)*))", re.DOTALL
)
TOKEN_AUTH: Final = "tokenauth"  # the extension by which a client says that its user is a delegation token


Work = Callable[[], object]


class Step(NamedTuple):
    """What a token led to: with a user the exchange is complete."""

    challenge: bytes
    user: str = ""
    expires_ms: int | None = None  # Unix milliseconds: the credentials are valid up to then
    by_token: bool = False  # the user authenticated with a delegation token


class RefusedError(Exception):
    """The exchange has failed. The message is for the client; "" for the words that tell nothing."""


class ScramKeys(NamedTuple):
    """What a server keeps of a password, as in Kafka's UserScramCredentialRecord."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class Exchange(Protocol):
    """One attempt of a client."""

    def step(self, token: bytes) -> Step:
        """Take the client's next token. Errors: RefusedError."""

    def work(self, token: bytes) -> Work | None:
        """What `step` will do with this token that takes milliseconds, for any thread; it is done once. None: none."""


class Users:
    """The users of one listener and mechanism: those of a login module, and those in the cluster's records.

    passwords   of the login module, by user.
    records     (user, number of a SCRAM mechanism) -> credential, or None.
    tokens      (id of a delegation token, number) -> (credential, its owner, when it expires), or None.
    token_work  the same -> what makes its credential, which `tokens` then finds; None: there is nothing to do.
    examples    number of a SCRAM mechanism -> the salts and iterations of users who exist.
    secret      from which credentials are made up for users who do not exist.
    """

    def __init__(
        self,
        passwords: Mapping[str, str],
        records: Callable[[str, int], ScramKeys | None],
        secret: bytes,
        tokens: Callable[[str, int], tuple[ScramKeys, str, int] | None] = lambda user, mechanism: None,
        examples: Callable[[int], Sequence[tuple[bytes, int]]] = lambda mechanism: (),
        token_work: Callable[[str, int], Work | None] = lambda user, mechanism: None,
    ) -> None:
        self.passwords = passwords
        self.records = records
        self.tokens = tokens
        self.examples = examples
        self.token_work = token_work
        self._secret = secret

    def made_up(self, user: str, mechanism: int) -> ScramKeys:
        """Credentials that no password matches, whose salt and iterations look like those of a user who exists."""
        seed = self._secret + user.encode()
        known = self.examples(mechanism) or ((bytes(16), ITERATIONS),)
        # the same one for this name, as long as that user is there
        like, iterations = min(known, key=lambda each: hashlib.blake2b(seed + each[0]).digest())
        size = hashlib.new(DIGESTS[mechanism]).digest_size
        stream = hashlib.shake_256(seed).digest(LONGEST_SALT)
        return ScramKeys(_salt_like(like, stream), bytes(size), bytes(size), iterations)

    def password_check(self, user: str) -> Callable[[str], bool]:
        """What says whether a text is the user's password; it takes 2 ms or more, and any thread may call it."""
        known = self.passwords.get(user)
        found = [record for number in DIGESTS if (record := self.records(user, number)) is not None]
        record = found[0] if found else self.made_up(user, 1)
        number = 1 if len(record.stored_key) == 32 else 2

        def is_right(password: str) -> bool:
            is_known = hmac.compare_digest((known or "").encode(), password.encode()) and known is not None
            keys = scram_keys(password, number, record.salt, record.iterations)
            return hmac.compare_digest(keys.stored_key, record.stored_key) or is_known

        return is_right


def _salt_like(salt: bytes, stream: bytes) -> bytes:
    """Bytes from a stream, as many as a salt has and of its kind: tools write salts in letters and digits."""
    kind = next((each for each in _SALT_KINDS if set(salt) <= set(each)), None)
    drawn = stream[: len(salt)]
    return drawn if kind is None else bytes(kind[each % len(kind)] for each in drawn)


def scram_keys(password: str, mechanism: int, salt: bytes, iterations: int = ITERATIONS) -> ScramKeys:
    """What a server keeps of a password; 2 ms for 4096 iterations. Source: RFC 5802, 3."""
    digest = DIGESTS[mechanism]
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", digest)
    return ScramKeys(
        salt, hashlib.new(digest, client_key).digest(), hmac.digest(salted, b"Server Key", digest), iterations
    )


class Plain:
    """User and password in one token."""

    def __init__(self, users: Users) -> None:
        self._users = users
        self._is_right: bool | None = None  # the password; None: it was not looked at

    def work(self, token: bytes) -> Work | None:
        """See Exchange."""
        _, user, password, *more = [*token.decode("utf-8", "replace").split("\0"), "", ""]
        if len(more) != 2 or not user or not password:
            return None
        check = self._users.password_check(user)

        def look() -> None:
            self._is_right = check(password)

        return look

    def step(self, token: bytes) -> Step:
        """Check a token of PLAIN (RFC 4616). Errors: RefusedError: malformed, or not the user's password."""
        parts = token.decode("utf-8", "replace").split("\0")
        if len(parts) != 3:
            raise RefusedError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        asked, user, password = parts
        if not user:
            raise RefusedError("Authentication failed: username not specified")
        if not password:
            raise RefusedError("Authentication failed: password not specified")
        if self._is_right is None:
            self._is_right = self._users.password_check(user)(password)
        if not self._is_right:
            raise RefusedError("Authentication failed: Invalid username or password")
        if asked and asked != user:
            raise RefusedError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        return Step(b"", user)


class Scram:
    """Challenge and response. A user that is a delegation token says so by the extension tokenauth=true (KIP-48).

    Not by the library scramp, which takes no salt below 12 bytes, as Kafka and its clients do; the tests use it as the
    client.
    """

    def __init__(self, users: Users, mechanism: str, rng: Rng) -> None:
        self._users = users
        self._number = SCRAM[mechanism]
        self._nonce = f"{rng.getrandbits(128):032x}"
        self._user = ""
        self._keys: ScramKeys | None = None  # of the user, once its first message has come
        self._is_wrong = self._by_token = False
        self._expires_ms: int | None = None
        self._binding = b""  # what the client must repeat of its first message
        self._signed = ""  # the messages so far, as they are signed

    def work(self, token: bytes) -> Work | None:
        """See Exchange: the credential of a delegation token."""
        found = _FIRST.fullmatch(token.decode("ascii", "replace")) if len(token) <= LONGEST else None
        if self._keys is not None or found is None:
            return None
        _, _, _, name, _, extensions = found.groups()
        return self._users.token_work(_user(name), self._number) if _is_token(extensions) else None

    def step(self, token: bytes) -> Step:
        """Take the client's first or final message. Errors: RefusedError."""
        try:
            text = token.decode()
            return Step(self._first(text)) if self._keys is None else self._final(text)
        except ValueError:  # not UTF-8, no base64, or fewer parts
            raise RefusedError("") from None

    def _first(self, text: str) -> bytes:
        """n,a=AUTHORIZATION ID,n=USER,r=NONCE,EXTENSIONS"""
        found = _FIRST.fullmatch(text) if len(text) <= LONGEST else None
        if found is None:
            raise RefusedError("")
        header, authorization, bare, name, nonce, extensions = found.groups()
        user = _user(name)
        if authorization not in (None, user):
            raise RefusedError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self._find(user, by_token=_is_token(extensions))
        assert self._keys is not None
        self._binding = header.encode()
        self._nonce = nonce + self._nonce
        answer = f"r={self._nonce},s={b64encode(self._keys.salt).decode()},i={self._keys.iterations}"
        self._signed = f"{bare},{answer}"
        return answer.encode()

    def _find(self, user: str, *, by_token: bool) -> None:
        self._user, self._by_token = user, by_token
        made_up = self._users.made_up(user, self._number)  # always, so that it takes as long for users who exist
        if by_token:
            if (token := self._users.tokens(user, self._number)) is not None:
                self._keys, self._user, self._expires_ms = token
        else:
            self._keys = self._users.records(user, self._number)
        if self._keys is None:
            self._is_wrong = True
            self._keys = made_up

    def _final(self, text: str) -> Step:
        """c=BINDING,r=NONCE,p=PROOF: Kafka does not count extensions to what is signed, so no client sends any."""
        keys, digest = self._keys, DIGESTS[self._number]
        assert keys is not None
        unsigned, _, proof_text = text.rpartition(",p=")
        parts = unsigned.split(",")
        proof = b64decode(proof_text, validate=True)
        if len(parts) != 2 or parts[0] != f"c={b64encode(self._binding).decode()}" or parts[1] != f"r={self._nonce}":
            raise RefusedError("")
        message = f"{self._signed},{unsigned}".encode()
        signature = hmac.digest(keys.stored_key, message, digest)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        is_right = hmac.compare_digest(hashlib.new(digest, client_key).digest(), keys.stored_key)
        if self._is_wrong or not is_right:
            raise RefusedError("")
        answer = b"v=" + b64encode(hmac.digest(keys.server_key, message, digest))
        return Step(answer, self._user, self._expires_ms, self._by_token)


def _user(name: str) -> str:
    """A name as a client's first message has it."""
    return name.replace("=2C", ",").replace("=3D", "=")


def _is_token(extensions: str) -> bool:
    """Whether the user is a delegation token."""
    said = dict(each.split("=", 1) for each in extensions.split(",")[1:])
    return said.get(TOKEN_AUTH, "").lower() == "true"
