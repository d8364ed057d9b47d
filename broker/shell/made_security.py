"""What `--security` makes of one word: listeners, certificates, users and files for clients, all for tests.

word             listener         certificates            users
sasl_ssl         SASL_SSL         the broker's            by password: SCRAM, PLAIN
sasl_plaintext   SASL_PLAINTEXT   none                    by password: SCRAM, PLAIN
ssl              SSL              the broker's            none: all are ANONYMOUS
mtls             SSL              the broker's, clients'  by the name in their certificate
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.cluster.listeners import split_listen
from broker.config.authorizer_setting import CLASS
from broker.config.config_values import ConfigError
from broker.security.listener_settings import need
from broker.security.mechanisms import ITERATIONS, scram_keys
from broker.shell.tls.own_authority import check_user
from protocol.messages.metadata_records import UserScramCredentialRecord, encode_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.broker import Broker
    from broker.shell.tls.own_authority import OwnAuthority

WORDS: Final = {
    "sasl_ssl": "SASL_SSL",
    "sasl_plaintext": "SASL_PLAINTEXT",
    "ssl": "SSL",
    "mtls": "SSL",
}
MECHANISM: Final = "SCRAM-SHA-256"  # of the files for clients: all of them have it
GIVEN: Final = "given"  # the listeners are those of Kafka's settings
_HOST: Final = re.compile(r"://\[?([^,]*?)\]?:\d+\s*(?:,|$)")
DEFAULT_USER: Final = ("client", "client-secret")
FOLDER: Final = "security"  # in the data directory
_RULE: Final = r"RULE:^.*?CN=([^,+]+).*$/$1/,DEFAULT"


def secured(
    word: str | None,
    users: Mapping[str, str] | None,
    properties: Mapping[str, str],
    listen: str | None,
    data_dir: str,
    flush: str,
) -> tuple[MadeSecurity, dict[str, str]]:
    """The security of a new cluster, and its settings. Errors: ConfigError.

    word    None: that of the listeners which `properties` has; users are added to it.
    users   name -> password; None: one is made up.
    """
    hosts = tuple(_HOST.findall(properties.get("advertised.listeners", "")))
    if listen:
        hosts += tuple(split_listen(address)[1] for address in listen.split(","))
    is_temporary = flush == "memory"
    made = MadeSecurity(word or GIVEN, users, f"{data_dir}/{FOLDER}", hosts, is_temporary=is_temporary)
    made.check()
    if is_temporary:
        made.folder = tempfile.mkdtemp(prefix="momus-security-")
    return made, made.properties(properties, listen)


class MadeSecurity:
    """The security of a cluster that was asked for by a word.

    users    name -> password; where passwords are used and none is given there is DEFAULT_USER.
    folder   where certificates are.
    Errors:  ConfigError.
    """

    __test__ = False  # for pytest

    def __init__(
        self,
        word: str,
        users: Mapping[str, str] | None,
        folder: str,
        hosts: tuple[str, ...] = (),
        *,
        is_temporary: bool = False,
    ) -> None:
        if word not in (*WORDS, GIVEN):
            raise ConfigError("--security", word, f"is one of {', '.join(WORDS)}")
        if word == "ssl" and users:
            raise ConfigError("--user", next(iter(users)), "has no use with ssl, where clients do not say who they are")
        self.word = word
        self.folder = folder
        self._hosts = hosts
        self._is_temporary = is_temporary
        self._origin = ""  # the folder of the cluster that this one is a fork of: clients trust both
        self.users = dict([DEFAULT_USER] if users is None and word != "ssl" else users or {})
        self._authority: OwnAuthority | None = None

    @property
    def protocol(self) -> str:
        """The security protocol of the listeners, such as SASL_SSL."""
        return WORDS.get(self.word, "SASL_PLAINTEXT")

    def fork_of(self, other: MadeSecurity) -> None:
        """Begin with the certificates of another."""
        self._origin = other.folder

    def close(self) -> None:
        """The cluster has ended: what is in a folder of its own is removed."""
        if self._is_temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def asked_for(self) -> str | None:
        """The word; None where Kafka's settings say what listeners there are."""
        return None if self.word == GIVEN else self.word

    @property
    def has_passwords(self) -> bool:
        """Whether clients authenticate by SASL."""
        return self.protocol.startswith("SASL")

    @property
    def has_certificates(self) -> bool:
        """Whether the listeners have TLS."""
        return self.protocol.endswith("SSL")

    @property
    def authority(self) -> OwnAuthority:
        """The certificates, made when first needed."""
        if self._authority is None:
            from broker.shell.tls.own_authority import OwnAuthority  # 60 ms, and only --security needs it

            self._authority = OwnAuthority(self.folder, self._hosts)
        return self._authority

    def properties(self, given: Mapping[str, str], listen: str | None) -> dict[str, str]:
        """Kafka's settings that this stands for; those that are given come first."""
        if self.word == GIVEN:
            return dict(given)
        if "listeners" in given:
            raise ConfigError("--security", self.word, "makes the listener: set --listen, not listeners")
        name, _, address = (listen.split(",")[0] if listen else "127.0.0.1:9092").rpartition("://")
        if name and name.upper() != self.protocol:
            raise ConfigError("--security", self.word, f"makes a listener {self.protocol}, and --listen names {name}")
        found = {
            "listeners": f"{self.protocol}://{address}",
            "authorizer.class.name": CLASS,
            "super.users": "User:admin",
            "allow.everyone.if.no.acl.found": "true",  # until a test makes the first ACL of a resource
        }
        if self.has_passwords:
            found["sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
        if self.has_certificates:
            found["ssl.keystore.location"] = f"{self.folder}/server.pem"
            found["ssl.truststore.location"] = f"{self.folder}/ca.pem"
            found["ssl.keystore.type"] = found["ssl.truststore.type"] = "PEM"
        if self.word == "mtls":
            found["ssl.client.auth"] = "required"
            found["ssl.principal.mapping.rules"] = _RULE
        return {**found, **given}

    def check(self) -> None:
        """Refuse what cannot be made. Errors: ConfigError."""
        for name, password in self.users.items():
            check_user(name)
            if self.word != "mtls" and not password:
                raise ConfigError("--user", name, "needs a password: NAME:PASSWORD")
        if self.has_certificates:
            need("trustme", "--security")

    def prepare(self) -> None:
        """Make the certificates that are not there. Errors: ConfigError."""
        if not self.has_certificates:
            return
        try:
            if self._origin and not Path(self.folder, "ca.pem").exists():
                shutil.copytree(self._origin, self.folder, dirs_exist_ok=True)
            _ = self.authority
            for name in self.users if self.word == "mtls" else ():
                if not self.authority.has(name):
                    self.authority.issue(name)
        except OSError as error:
            raise ConfigError("--security", self.folder, f"cannot hold certificates: {error}") from None

    def add_users(self, broker: Broker) -> None:
        """Write the users' credentials into the cluster's records, where they are not there."""
        known = broker.metadata.clients.credentials
        records = [
            (None, record)
            for name, password in (self.users.items() if self.has_passwords else ())
            if name not in known
            for record in credential_records(broker, name, password)
        ]
        if records:
            broker.turn.begin()
            broker.metadata_shard.append(records, broker.turn.now_ms)
            broker.turn.touch(broker.metadata_shard.flush_state)

    def client_files(self, user: str) -> dict[str, bytes]:
        """The files that a client of this user needs. Errors: LookupError: there is no such user."""
        if user not in self.users and (user or self.word != "ssl"):
            raise LookupError(f"no such user: {user or 'no name':.64}; there are {', '.join(self.users) or 'none'}")
        if not self.has_certificates:
            return {}
        names = {"ca.pem": "ca.pem", "truststore.p12": "truststore.p12"}
        if self.word == "mtls":
            names |= {"client.pem": f"{user}.pem", "client.p12": f"{user}.p12"}
        return {name: (self.authority.folder / file).read_bytes() for name, file in names.items()}


def credential_records(broker: Any, name: str, password: str) -> list[bytes]:
    """The records of a user with a password, for both kinds of SCRAM."""
    rng = broker.turn.env.rng
    found = []
    for mechanism in (1, 2):
        keys = scram_keys(password, mechanism, rng.getrandbits(128).to_bytes(16, "big"), ITERATIONS)
        found.append(encode_record(UserScramCredentialRecord(name=name, mechanism=mechanism, **keys._asdict()), 0))
    return found
