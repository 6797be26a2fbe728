"""What one exchange may take, at its limits and by a clock that stands still."""

import time

import httpcore
import pytest

from jevexp.untrusted.http import Bounds

HEAD = 256 << 10


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_step_has_what_is_left_of_the_time_and_no_more(clock: list[float]) -> None:
    bounds = Bounds()
    assert bounds.cut(7.0, httpcore.ReadTimeout) == 7.0
    with bounds.within(5.0, 10) as allowance:
        assert bounds.cut(None, httpcore.ReadTimeout) == 5.0
        assert bounds.cut(7.0, httpcore.ReadTimeout) == 5.0
        clock[0] += 3
        assert bounds.cut(1.0, httpcore.ReadTimeout) == 1.0
        assert bounds.cut(7.0, httpcore.ReadTimeout) == 2.0
        passed = [allowance.passed]
        clock[0] += 2
        passed.append(allowance.passed)
        assert passed == [False, True]
        with pytest.raises(httpcore.ReadTimeout, match="the exchange took too long"):
            bounds.cut(7.0, httpcore.ReadTimeout)
    assert bounds.cut(7.0, httpcore.ReadTimeout) == 7.0


def test_a_head_has_256_kib_and_a_body_twice_its_own_bytes_more() -> None:
    bounds = Bounds()
    assert bounds.count(b"x" * (HEAD + 1)) == b"x" * (HEAD + 1)
    bounds.body_follows()
    for following, most in ((False, HEAD), (True, HEAD + 2 * 10)):
        with bounds.within(5.0, 10) as allowance:
            if following:
                bounds.body_follows()
            assert bounds.count(b"x" * (most - 1)) == b"x" * (most - 1)
            bounds.count(b"x")
            assert (allowance.left_bytes, allowance.exceeded) == (0, False)
            with pytest.raises(httpcore.ReadError, match="the answer is too large"):
                bounds.count(b"x")
            assert allowance.exceeded
