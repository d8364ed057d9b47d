"""Authentication of one broker: mechanisms and users of its listeners, and whom it admits or turns away.

Differs:  SCRAM and OAUTHBEARER need no login module. `sasl.jaas.config` counts without a listener or a mechanism in its
          key too. A listener with SASL and no mechanism, with one that is unknown, or with a login module of another
          mechanism does not start; in Kafka no client could authenticate.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from broker.config.config_values import ConfigError, StartRefusedError
from broker.security.bare_tokens import BareTokens
from broker.security.delegation_tokens import TokenKeys, is_expired, secret_of
from broker.security.guarded_service import GuardedService
from broker.security.jaas import KEY, LoginModule, parse_jaas
from broker.security.listener_settings import OAUTHBEARER, PLAIN, ListenerSettings, need
from broker.security.mechanisms import Plain, Scram, ScramKeys, Users
from broker.security.oauthbearer import OAuthBearer, Tokens
from broker.security.session import Mechanism, Session

if TYPE_CHECKING:
    from broker.cluster.listeners import Listener, Node
    from broker.cluster.metadata import ClusterMetadata
    from broker.config.releases import Release
    from broker.config.settings import BrokerConfig
    from broker.coordinator.runtime import Shard
    from broker.security.mechanisms import Work
    from broker.security.session import Answer
    from broker.turn.turn import Turn
    from broker.wire.clients import Clients
    from broker.wire.connection import Connection

logger = logging.getLogger("momus.security")

SCRAM_MODULE: Final = "ScramLoginModule"
ENTRY: Final = "KafkaServer"  # of a file of logins
MODULES: Final = {PLAIN: "PlainLoginModule", OAUTHBEARER: "OAuthBearerLoginModule"}
ORIGINS_SINCE: Final = (4, 4)
WAYS_OUT: Final = {
    "audience": 'Set "sasl.oauthbearer.expected.audience" to the audience(s) that identify this cluster, or set'
    ' "sasl.oauthbearer.allow.unverified.audience" to true to accept tokens regardless of their audience.',
    "issuer": 'Set "sasl.oauthbearer.expected.issuer" to the issuer URL of the OAuth/OIDC provider that signs the'
    ' tokens, or set "sasl.oauthbearer.allow.unverified.issuer" to true to accept tokens regardless of their issuer.',
}
JWKS: Final = "sasl.oauthbearer.jwks.endpoint.url"
CLOSING_DELAY_S: Final = 0.05
MOST_SALTS: Final = 100  # that made-up ones are modelled on
OPENING_LIMIT_MS: Final = 30_000  # a client has so long, by the machine's clock, to authenticate


def login_module(settings: ListenerSettings, mechanism: str) -> LoginModule:
    """The login module of a mechanism; one without options where none is set. Errors: ConfigError."""
    return _login_module(settings, mechanism) or LoginModule(MODULES.get(mechanism, SCRAM_MODULE), {})


def _login_module(settings: ListenerSettings, mechanism: str) -> LoginModule | None:
    """The same; None: neither the settings nor the file of logins have one. Errors: ConfigError."""
    wanted = MODULES.get(mechanism, SCRAM_MODULE)
    text = settings.text(KEY, mechanism)
    if not text:
        return _of_file(settings, wanted)
    found = parse_jaas(text)
    if found.name.rpartition(".")[2] != wanted:
        if text == settings.text(KEY):  # it is that of another mechanism
            return _of_file(settings, wanted)
        raise ConfigError(KEY, "[hidden]", f"the login module of {mechanism} is {wanted}")
    return found


def _of_file(settings: ListenerSettings, wanted: str) -> LoginModule | None:
    """The login module in the file's entry for this listener, or else for all; without options where it has another."""
    for entry in (f"{settings.name.lower()}.{ENTRY}", ENTRY):
        if entry in settings.logins:
            of_class = [options for name, options in settings.logins[entry] if name.rpartition(".")[2] == wanted]
            return LoginModule(wanted, dict(of_class[0]) if of_class else {})
    return None


def check_sasl(config: BrokerConfig, nodes: list[Node]) -> None:
    """Refuse to start with listeners that cannot authenticate anybody. Errors: ConfigError."""
    for name in {listener.name: 1 for node in nodes for listener in node.listeners.values() if listener.is_sasl}:
        settings = ListenerSettings(config, name)
        for mechanism in settings.mechanisms:
            login_module(settings, mechanism)
            if mechanism == OAUTHBEARER and settings.text(JWKS, mechanism):
                need("jwt", JWKS)
                _check_origins(settings, config.release)


def _check_origins(settings: ListenerSettings, release: Release | None) -> None:
    """Tokens of any audience or issuer are taken only where that is said, since Kafka 4.4. Errors: ConfigError."""
    if release is not None and tuple(map(int, release.name.split("."))) < ORIGINS_SINCE:
        return
    for what, claim in (("audience", "aud"), ("issuer", "iss")):
        wanted, lenient = f"sasl.oauthbearer.expected.{what}", f"sasl.oauthbearer.allow.unverified.{what}"
        if not settings.text(wanted, OAUTHBEARER) and settings.text(lenient, OAUTHBEARER) != "true":
            raise StartRefusedError(
                wanted,
                f'The OAuth validator for the broker requires "{wanted}" to be configured so that the token\'s {what}'
                f' ("{claim}") claim can be verified, but it was not set. {WAYS_OUT[what]}',
            )


def check_users(config: BrokerConfig, nodes: list[Node], *, has_users: bool) -> None:
    """Refuse to start with a PLAIN listener that would turn everybody away.

    has_users  whether there are users beside those in login modules: a password of SCRAM's is one of PLAIN's as well.
    Errors:    ConfigError.
    """
    if has_users:
        return
    for name in {listener.name: 1 for node in nodes for listener in node.listeners.values() if listener.is_sasl}:
        settings = ListenerSettings(config, name)
        if PLAIN in settings.mechanisms and _login_module(settings, PLAIN) is None:
            raise StartRefusedError(
                KEY,
                f"Could not find a '{ENTRY}' or '{name.lower()}.{ENTRY}' entry in the JAAS configuration: the listener"
                f" {name} has PLAIN and no users. Set listener.name.{name.lower()}.plain.{KEY}, or name users by"
                " --user NAME:PASSWORD",
            )


class Security:
    """The authentication of one broker.

    later     (seconds, call): makes a call after a time of the machine's clock.
    beside    (work, done): has work done beside the broker's thread, then calls `done` in it; None: there is no other.
    key_sets  the JWKS of each URL, as last read.
    """

    def __init__(
        self,
        turn: Turn,
        config: BrokerConfig,
        clients: Clients,
        metadata_shard: Shard,
        later: Callable[[float, Callable[[], None]], object],
        beside: Callable[[Work, Callable[[], None]], object] | None = None,
    ) -> None:
        self._turn = turn
        self._config = config
        self._clients = clients
        self._metadata_shard = metadata_shard
        self._later = later
        self._beside = beside
        self._secret = turn.env.rng.getrandbits(256).to_bytes(32, "big")
        self._mechanisms: dict[str, dict[str, Mechanism]] = {}  # by listener
        self.key_sets: dict[str, Mapping[str, Any]] = {}
        self._token_keys = TokenKeys(secret) if (secret := secret_of(config)) else None
        clients.gone.append(self._gone)

    # -- connections

    def guard(self, listener: Listener) -> GuardedService:
        """What serves a new connection of a SASL listener."""
        if listener.name not in self._mechanisms:
            self._mechanisms[listener.name] = self._mechanisms_of(listener.name)
        session = Session(self._mechanisms[listener.name], self._turn.env.clock.now_ms)
        limit = ListenerSettings(self._config, listener.name).number("sasl.server.max.receive.size")
        return GuardedService(self._clients, session, min(limit, self._clients.request_limit))

    def step(self, connection: Connection, token: bytes, done: Callable[[Answer], None]) -> Answer | None:
        """Take a token of a client. Returns the answer; None: a password is looked at, and `done` is given it then.

        Until then nothing more is read from the client, and all others are served.
        """
        session: Session = connection.guard.session
        work = None if self._beside is None else session.work(token)
        if work is None or self._beside is None:
            return session.step(token)

        def looked() -> None:
            if not connection.closed:
                self._turn.begin()
                connection.throttle(False)
                done(session.step(token))

        connection.throttle(True)
        self._beside(work, looked)
        return None

    def admit(self, connection: Connection) -> None:
        """A client has authenticated: serve it until its session expires."""
        guard, session = connection.guard, connection.guard.session
        connection.principal = session.principal
        connection.service = guard.service
        timers = self._turn.timers
        timers.cancel(guard.alarm)
        if session.expires_ms is not None:
            due_ms = self._turn.env.clock.steady_ms() + session.expires_ms - session.began_ms
            guard.alarm = timers.at(due_ms + 1, partial(self._expire, connection), is_deadline=True)
        logger.debug("%s authenticated as %s by %s", connection.host, session.principal, session.mechanism)

    def _gone(self, connection: Connection) -> None:
        """A connection is closed: its session ends nothing any more."""
        if connection.guard is not None:
            self._turn.timers.cancel(connection.guard.alarm)

    def _expire(self, connection: Connection, due_ms: int, now_ms: int) -> None:
        """A session has expired: the next request must be a handshake."""
        if not connection.closed:
            connection.service = connection.guard

    def read_bare_tokens(self, connection: Connection) -> None:
        """The exchange goes on without requests, once the frame that began it is served."""
        self._turn.call_soon(BareTokens(connection, self.step, self.admit, self.fail).begin)

    def hold_back(self, connection: Connection) -> None:
        """A client authenticates again: until that is done it is served nothing else."""
        connection.service = connection.guard

    def fail(self, connection: Connection, why: str, answer: Callable[[], None] | None = None) -> None:
        """A client has failed to authenticate. Answer and close after a delay that makes guessing slow."""
        logger.warning("Failed authentication with %s (%s)", connection.host, why)
        connection.throttle(True)  # for good: what it sends must not end it sooner, which would tell that it has failed
        delay_ms = self._config.connection_failed_authentication_delay_ms

        def end() -> None:
            if not connection.closed:
                if answer is not None:
                    answer()
                # not at once: some clients that read the answer and the end of the stream together see the end alone
                self._later(CLOSING_DELAY_S, connection.transport.close)

        self._later(delay_ms / 1000, end)

    def sweep(self, most: int) -> bool:
        """Close connections that take too long to authenticate, so many. Returns whether there are more."""
        now_ms = self._turn.env.clock.monotonic_ms()
        closed = 0
        for connection in list(self._clients.open):
            guard = connection.guard
            if guard is None or guard.session.is_authenticated or connection.asleep:
                continue
            if now_ms - guard.opened_ms > OPENING_LIMIT_MS:
                if closed == most:
                    return True
                closed += 1
                connection.refuse(f"it has not authenticated within {OPENING_LIMIT_MS // 1000} s")
        return False

    def password_check(self, listener: str, user: str) -> Callable[[str], bool]:
        """What says whether a listener with SASL would take a password, by whichever mechanism; for any thread."""
        settings = ListenerSettings(self._config, listener)
        named: dict[str, str] = {}
        for mechanism in settings.mechanisms:
            if mechanism != OAUTHBEARER:
                named |= _passwords(login_module(settings, mechanism).options)
        return Users(named, self._credential, self._secret, examples=self._salts).password_check(user)

    # -- what listeners accept

    def key_urls(self, listeners: list[Listener]) -> dict[str, int]:
        """The URLs of key sets, with the time in ms between two readings."""
        found = {}
        for listener in listeners:
            settings = ListenerSettings(self._config, listener.name)
            if listener.is_sasl and OAUTHBEARER in settings.mechanisms and (url := settings.text(JWKS, OAUTHBEARER)):
                found[url] = settings.number("sasl.oauthbearer.jwks.endpoint.refresh.ms", OAUTHBEARER)
        return found

    def _mechanisms_of(self, listener: str) -> dict[str, Mechanism]:
        settings = ListenerSettings(self._config, listener)
        found = {}
        for name in settings.mechanisms:
            options = login_module(settings, name).options
            max_reauth_ms = settings.number("connections.max.reauth.ms", name)
            begin: Callable[[], Any]
            if name == OAUTHBEARER:
                begin = partial(OAuthBearer, self._tokens(settings, options))
            else:
                users = Users(
                    _passwords(options), self._credential, self._secret, self._token, self._salts, self._token_work
                )
                begin = partial(Plain, users) if name == PLAIN else partial(Scram, users, name, self._turn.env.rng)
            found[name] = Mechanism(begin, max_reauth_ms)
        return found

    def _tokens(self, settings: ListenerSettings, options: Mapping[str, str]) -> Tokens:
        url = settings.text(JWKS, OAUTHBEARER)
        keys = partial(self._key_set, url) if url else None
        return Tokens(settings, OAUTHBEARER, options, self._turn.env.clock.now_ms, keys)

    def _key_set(self, url: str) -> Mapping[str, Any]:
        return self.key_sets.get(url, {"keys": []})

    def _token(self, token_id: str, mechanism: int) -> tuple[ScramKeys, str, int] | None:
        """Credential, owner's name and end of a delegation token that can be used; None: there is none."""
        metadata: ClusterMetadata = self._metadata_shard.machine
        token = metadata.clients.tokens.get(token_id)
        if token is None or self._token_keys is None or is_expired(token, self._turn.env.clock.now_ms()):
            return None
        expires_ms = min(token.expiration_timestamp, token.max_timestamp)
        return self._token_keys.find(token_id, mechanism), token.owner.partition(":")[2], expires_ms

    def _token_work(self, token_id: str, mechanism: int) -> Work | None:
        """What makes the credential of a delegation token, unless it is kept, or there is no such token."""
        keys = self._token_keys
        if keys is None or keys.has(token_id, mechanism) or token_id not in self._metadata_shard.machine.clients.tokens:
            return None
        return partial(keys.find, token_id, mechanism)

    def _salts(self, mechanism: int) -> list[tuple[bytes, int]]:
        """Salt and iterations of each user with a credential for a mechanism, at most a hundred."""
        metadata: ClusterMetadata = self._metadata_shard.machine
        found = (each[mechanism] for each in metadata.clients.credentials.values() if mechanism in each)
        return [(each.salt, each.iterations) for each in islice(found, MOST_SALTS)]

    def _credential(self, user: str, mechanism: int) -> ScramKeys | None:
        metadata: ClusterMetadata = self._metadata_shard.machine
        record = metadata.clients.credentials.get(user, {}).get(mechanism)
        if record is None:
            return None
        return ScramKeys(record.salt, record.stored_key, record.server_key, record.iterations)


def _passwords(options: Mapping[str, str]) -> dict[str, str]:
    """The users of PLAIN in a login module: user_NAME="PASSWORD"."""
    return {key.removeprefix("user_"): text for key, text in options.items() if key.startswith("user_")}
