"""Which hosts a call is about, however they are written; a doubt is never a permission."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy.verdicts import ALLOW, DENY, decided

from toolrunner.errors import PolicyError
from toolrunner.policy import Rule
from toolrunner.policy.reading import hosts


@pytest.mark.parametrize(
    "text, name, port",
    [
        ("https://Example.COM/x", "example.com", 443),
        ("https://example.com.:8443", "example.com", 8443),
        ("http://user:pw@example.com", "example.com", 80),
        ("http://good.com@evil.com/", "evil.com", 80),
        ("example.com:8080", "example.com", 8080),
        ("//example.com/x", "example.com", None),
        ("https://bücher.de", "xn--bcher-kva.de", 443),
        ("https://xn--BCHER-kva.de", "xn--bcher-kva.de", 443),
        ("https://bücher。de", "xn--bcher-kva.de", 443),
        ("https://ｅxample.com", "example.com", 443),  # noqa: RUF001 - a full-width letter
    ],
)
def test_a_host_has_one_form_for_every_spelling(text: str, name: str, port: int | None) -> None:
    found = hosts.read(text)
    assert found is not None
    assert (found.name, found.port) == (name, port)


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1", "http://127.1", "http://2130706433", "http://0x7f000001", "http://0177.0.0.1", "http://127.0.0.1.",
        "http://[::1]", "http://[::ffff:127.0.0.1]", "http://localhost", "http://LOCALHOST.", "http://a.localhost",
        "http://0.0.0.0", "http://[::]", "::1", "127.0.0.1:80",
    ],
)  # fmt: skip
@pytest.mark.case("X21")
def test_loopback_is_known_in_every_form(text: str) -> None:
    rule = Rule(DENY, hosts=["127.0.0.0/8", "[::1]"])
    assert decided(rule, {"url": text}) is DENY


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.com\\@good.com", "https://evil\0.good.com", "https://ev il.com", "https://good.com%2eevil.com", "https://",
        "https:/good.com", "http:good.com", "ht\ntp://good.com", "https://a@b@good.com", "https://good.com:99999",
        "https://good.com:٤٤٣", "https://[::1", "https://[fe80::1%25eth0]", "https://straße.de", "https://a..b", "https://-.-", "ws:///",
        "https://good.com:8o",
    ],
)  # fmt: skip
@pytest.mark.case("X21")
def test_a_host_that_clients_read_differently_is_never_allowed_and_always_forbidden(text: str) -> None:
    assert hosts.read(text) is None
    assert decided(Rule(ALLOW, hosts=["good.com", "*.good.com", "*"]), {"url": text}) is DENY
    assert decided(Rule(DENY, hosts=["bad.com"]), {"url": text}) is DENY


@pytest.mark.parametrize(
    "pattern, text, allowed",
    [
        ("good.com", "https://good.com", True),
        ("good.com", "https://www.good.com", False),
        ("good.com", "https://notgood.com", False),
        ("good.com", "https://good.com.evil.org", False),
        ("*.good.com", "https://www.good.com", True),
        ("*.good.com", "https://good.com", False),
        ("*.good.com", "https://notgood.com", False),
        ("good.com", "https://good.com:8443", False),
        ("good.com:8443", "https://good.com:8443", True),
        ("good.com:8443", "https://good.com", False),
        ("good.com:*", "https://good.com:1", True),
        ("*", "https://anything.org", True),
        ("10.0.0.0/8", "http://10.1.2.3", True),
        ("10.0.0.0/8", "http://11.1.2.3", False),
        ("10.0.0.0/8", "http://ten.example", False),
        ("[fd00::1]:8080", "http://[fd00::1]:8080", True),
        ("bücher.de", "https://xn--bcher-kva.de", True),
    ],
)
def test_a_rule_that_allows_a_host_means_that_host(pattern: str, text: str, allowed: bool) -> None:
    assert decided(Rule(ALLOW, hosts=[pattern]), {"url": text}) is (ALLOW if allowed else DENY)


def test_a_rule_that_forbids_a_host_means_all_its_ports_and_finds_it_anywhere() -> None:
    rule = Rule(DENY, hosts=["bad.com", "*.bad.com"])
    for arguments in (
        {"url": "https://bad.com:8443"},
        {"host": "x.bad.com"},
        {"anything": ["ok", {"deep": "ftp://bad.com"}]},
        {"command": "curl -s https://bad.com/x"},
        {"url": ["https://good.com", "https://bad.com"]},
    ):
        assert decided(rule, arguments) is DENY
    assert decided(rule, {"url": "https://good.com", "text": "bad.com"}) is ALLOW


def test_every_host_has_to_be_allowed() -> None:
    rule = Rule(ALLOW, hosts=["good.com"])
    assert decided(rule, {"url": "https://good.com", "callback": "https://evil.com"}) is DENY
    assert decided(rule, {"text": "no host"}) is DENY


@pytest.mark.parametrize(
    "text", ["", "a b", "*.*.com", "a*.com", "https://x", "x:99999", "x:y", "*.10.0.0.1", "straße.de", "10.0.0.1/8"]
)
def test_what_is_no_pattern_of_a_host_is_refused(text: str) -> None:
    with pytest.raises(PolicyError):
        hosts.pattern(text)


@given(st.text(max_size=40))
def test_any_text_is_read_as_a_host_or_not_at_all(text: str) -> None:
    for one in (text, f"https://{text}", f"https://x:{text}", f"https://{text}@x"):
        found = hosts.read(one)
        assert found is None or (found.name.isascii() and found.name == found.name.lower())
