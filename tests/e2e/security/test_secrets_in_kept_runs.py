"""A run of a secured cluster that is kept holds no password, no token and no key."""

from __future__ import annotations

import io
import zipfile

from confluent_kafka import Producer

from momus import Broker
from momus.client.properties import parse_assignments

PASSWORD, TOKEN_KEY, OF_LISTENER = "s3same-password", "s3same-token-key", "s3same-of-listener"


def test_recording_of_a_secured_cluster_has_no_secret():
    config = parse_assignments(
        [
            f"delegation.token.secret.key={TOKEN_KEY}",
            f"listener.name.other.ssl.key.password={OF_LISTENER}",
            "num.partitions=3",
        ]
    )
    with Broker(security="sasl_plaintext", users={"alice": PASSWORD}, config=config) as broker:
        broker.record()
        broker.users.add("bob", f"{PASSWORD}-of-bob")
        for password in (PASSWORD, f"{PASSWORD}-wrong"):
            settings = {**broker.client_config("confluent", user="alice"), "sasl.password": password, "log_level": 0}
            for mechanism in ("PLAIN", "SCRAM-SHA-256"):
                producer = Producer({**settings, "sasl.mechanism": mechanism, "message.timeout.ms": 1000})
                producer.produce("t", b"x")
                producer.flush(10)
        kept = broker.recording()
    with zipfile.ZipFile(io.BytesIO(kept)) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    assert b"num.partitions" in parts["about.json"]
    for name, data in parts.items():
        for secret in (PASSWORD, TOKEN_KEY, OF_LISTENER):
            assert secret.encode() not in data, name
