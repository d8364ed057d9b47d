"""A user who does not exist is not told apart by salt or iterations."""

from __future__ import annotations

import string

from unit.security.security_kit import sasl_world

from broker.security.mechanisms import DIGESTS, ScramKeys, Users


def users(*salts: tuple[bytes, int]) -> Users:
    return Users({}, lambda user, mechanism: None, b"secret", examples=lambda mechanism: salts)


def test_salt_and_iterations_are_those_of_users_who_exist():
    letters = (string.ascii_lowercase + string.digits).encode()
    kinds = {(25, 8192): (b"1k9zq0a7x2m4n8b6v5c3l1j0z", 8192), (16, 4096): (bytes(range(200, 216)), 4096)}
    seen = set()
    for number in range(200):
        made = users(*kinds.values()).made_up(f"user-{number}", 1)
        seen.add((len(made.salt), made.iterations))
        if len(made.salt) == 25:
            assert set(made.salt) <= set(letters), "tools draw salts from these"
    assert seen == set(kinds)


def test_they_stay_while_other_users_come():
    known = [(bytes([128 + each]) * 16, 4096) for each in range(20)]
    before = [users(*known).made_up(f"user-{number}", 2).salt for number in range(50)]
    after = [users(*known, (bytes([250]) * 16, 4096)).made_up(f"user-{number}", 2).salt for number in range(50)]
    assert before == after
    assert len(set(before)) == 50


def test_another_cluster_makes_up_others():
    one = Users({}, lambda user, mechanism: None, b"one").made_up("x", 1)
    two = Users({}, lambda user, mechanism: None, b"two").made_up("x", 1)
    assert one.salt != two.salt
    assert isinstance(one, ScramKeys)
    assert all(len(users().made_up("x", number).stored_key) in (32, 64) for number in DIGESTS)


def test_examples_are_the_users_of_the_cluster():
    world = sasl_world()
    security = world.broker.security
    salts = security._salts(1)
    assert salts == [
        (each[1].salt, each[1].iterations) for each in world.broker.metadata.clients.credentials.values() if 1 in each
    ]
