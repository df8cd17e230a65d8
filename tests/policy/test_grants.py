"""Grants: for exactly one call, and for a time."""

from dataclasses import replace

import pytest

from toolrunner.errors import ConfigError
from toolrunner.facts import GrantKey
from toolrunner.policy import Grants

KEY = GrantKey("shell", "reg1", '{"cmd":"ls"}', cwd="/w", env=(("A", "d1"),), argv0="/bin/ls", profile="p")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_session_grant_covers_equal_calls_until_it_expires(clock: Clock) -> None:
    grants = Grants(clock)
    assert not grants.valid(KEY)
    grants.allow(KEY, "session", 60)
    assert grants.valid(replace(KEY))
    clock.now += 59.9
    assert grants.valid(KEY)
    clock.now += 0.1
    assert not grants.valid(KEY)


@pytest.mark.parametrize(
    "other",
    [
        replace(KEY, tool="bash"),
        replace(KEY, registration="reg2"),
        replace(KEY, arguments='{"cmd":"rm"}'),
        replace(KEY, cwd="/"),
        replace(KEY, env=()),
        replace(KEY, argv0="/tmp/ls"),
        replace(KEY, profile="none"),
    ],
)
def test_it_covers_no_other_call(other: GrantKey, clock: Clock) -> None:
    grants = Grants(clock)
    grant = grants.allow(KEY, "session", 60)
    assert not grants.valid(other)
    assert not grants.holds(grant, other)


def test_an_approval_for_one_call_lets_no_second_equal_call_through(clock: Clock) -> None:
    grants = Grants(clock)
    grant = grants.allow(KEY, "once", 60)
    assert grants.holds(grant, KEY)
    assert not grants.valid(KEY)
    clock.now += 60
    assert not grants.holds(grant, KEY)


def test_a_shorter_grant_does_not_cut_a_longer_one(clock: Clock) -> None:
    grants = Grants(clock)
    grants.allow(KEY, "session", 60)
    grants.allow(KEY, "session", 10)
    clock.now += 30
    assert grants.valid(KEY)


def test_expired_grants_are_forgotten(clock: Clock) -> None:
    grants = Grants(clock)
    for n in range(10):
        grants.allow(replace(KEY, arguments=str(n)), "session", 1)
        clock.now += 1
    assert len(grants._session) == 1


def test_a_session_grant_can_be_taken_back(clock: Clock) -> None:
    grants = Grants(clock)
    grants.allow(KEY, "session", 60)
    assert grants.revoke(KEY)
    assert not grants.valid(KEY)
    assert not grants.revoke(KEY)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_grant_without_an_end_is_refused(seconds: float, clock: Clock) -> None:
    with pytest.raises(ConfigError):
        Grants(clock).allow(KEY, "session", seconds)
