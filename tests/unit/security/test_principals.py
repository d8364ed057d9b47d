"""Names in certificates, and the rules that make users of them."""

from __future__ import annotations

import ssl

import pytest
import trustme

from broker.config.settings import ConfigError
from broker.security.principals import PrincipalRules, distinguished_name


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ((), ""),
        (
            ((("countryName", "DE"),), (("organizationName", "A, B"),), (("commonName", "alice"),)),
            "CN=alice,O=A\\, B,C=DE",
        ),
        (((("commonName", " a+b#"),),), "CN=\\ a\\+b#"),
        (((("commonName", "#a "),),), "CN=\\#a\\ "),
        (((("commonName", "a"), ("userId", "7")),), "CN=a+UID=7"),
        (((("emailAddress", "a@b"),),), "1.2.840.113549.1.9.1=#1603614062"),
        (((("serialNumber", "7" * 200),),), "2.5.4.5=#1381c8" + "37" * 200),
    ],
)
def test_name_is_written_as_java_does(subject, name):
    assert distinguished_name({"subject": subject}) == name


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        ("DEFAULT", "CN=a,O=b", "User:CN=a,O=b"),
        ("", "CN=a", "User:CN=a"),
        (r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=svc,OU=ServiceUsers,O=x", "User:svc"),
        (r"RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L", "CN=Adam,OU=Ops,O=X", "User:adam@ops"),
        (r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, DEFAULT", "O=x,cn=bob", "User:BOB"),
        (r"RULE:^CN=x$/never/,DEFAULT", "CN=y", "User:CN=y"),
        (r"RULE:^CN=x$/never/", "CN=y", ""),
        (r"RULE:^CN=a\/b$/slash/", "CN=a/b", "User:slash"),
        (r"RULE:^CN=(a)(b)?$/$1$2-/", "CN=a", "User:a-"),
        (r"RULE:^CN=(a)$/$1$2$12/", "CN=a", "User:a$2$12"),
        (r"RULE:^CN=a$/$0!/", "CN=a", "User:CN=a!"),
        (r"RULE:^CN=(a)$/\$1\/$1/", "CN=a", "User:$1/a"),
    ],
)
def test_rules_make_users(rules, name, principal):
    assert PrincipalRules(rules).principal(name) == principal


@pytest.mark.parametrize(
    "rules",
    ["RULE:", "RULE:a/b", "default", "RULE:(/x/", "DEFAULT;DEFAULT", "RULE:(?=a)/b/", "RULE:a/$1/", "RULE:(a)/$x/"],
)
def test_rules_that_are_wrong_are_refused(rules):
    with pytest.raises(ConfigError):
        PrincipalRules(rules)


def test_name_of_a_real_certificate():
    made = trustme.CA().issue_cert("a@b", common_name="alice", organization_name="O, x", organization_unit_name="u")
    path_of = made.cert_chain_pems[0].tempfile
    with path_of() as path:
        decoded = ssl._ssl._test_decode_cert(path)  # what getpeercert() answers, without a connection
    assert distinguished_name(decoded) == "CN=alice,OU=u,O=O\\, x"
