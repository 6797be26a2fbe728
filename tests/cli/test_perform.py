"""What a run says of itself while it goes on."""

import pytest

from jevexp.cli.perform import Tally
from tests.support.runs import failure, noul_tasks, record, wrong

TASK = noul_tasks(1)[0]


def test_nothing_is_said_of_nothing() -> None:
    assert Tally().text() == "charged $0.00"


def test_numbers_so_far() -> None:
    tally = Tally()
    for one in (record(TASK, charged_usd=0.25), wrong(TASK), failure(TASK)):
        tally.add(one)
    assert tally.text() == "accuracy 0.333 · p50 0.250 s · charged $0.25 · failed 1"


@pytest.mark.parametrize("latency", [0.0, 1e-7, 0.0004, 0.05, 1.234, 250.0])
def test_the_median_is_right_to_half_a_thousandth(latency: float) -> None:
    tally = Tally()
    for factor in (0.01, 0.5, 1.0, 2.0, 100.0):
        tally.add(record(TASK, latency_s=latency * factor))
    shown = float(tally.text().partition("p50 ")[2].partition(" s")[0])
    assert shown == pytest.approx(latency, rel=0.00051, abs=0.0005)
