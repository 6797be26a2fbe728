"""How often the verdict is wrong about equal models, and how often it finds a real difference.

Every line is a setting with a known truth; "±" is twice the Monte-Carlo standard error. False
alarms must not be above the level, and the power must be what the tool claims within 3
points, give or take three Monte-Carlo errors, since there are a hundred numbers.
"""

import argparse
import math
import sys
from collections.abc import Iterator

from tests.analysis.simulated import BRIER_NOISE, Setting, Simulation, monte_carlo_error, share

from jevexp.analysis.verdicts import (
    Verdict,
    required_tasks,
    smallest_effect,
    smallest_mean,
)

LEVEL, POWER, TOLERANCE, ERRORS, ONE_WAY = 0.05, 0.8, 0.03, 3, 0.75
SIZES = (1, 2, 4)
TASKS = (72, 231, 1000)
DISCORDANCES = (0.1, 0.2, 0.4)
# True gains in accuracy and the share of tasks that flips: as many tasks as are said to be needed.
EFFECTS = ((0.05, 0.1), (0.1, 0.2), (0.1, 0.4), (0.2, 0.4))


def false_alarms(count: int) -> bool:
    """Equal models: the chance of "better" or "worse"."""
    print(f"equal models told apart, level {LEVEL:.0%}, {count} pairs a line")
    print("  tasks  cluster  flips    accuracy         Brier            either, after Holm")
    good = True
    for tasks in TASKS:
        for size in SIZES:
            for discordance in DISCORDANCES:
                setting = Setting(tasks - tasks % size, size, discordance=discordance)
                found = Simulation(setting, seed=1).verdicts(count)
                shares = {
                    name: share(counts, Verdict.BETTER, Verdict.WORSE)
                    for name, counts in found.items()
                }
                most = LEVEL + ERRORS * monte_carlo_error(LEVEL, count)
                good = good and max(shares.values()) <= most
                cells = "   ".join(shown(value, count) for value in shares.values())
                print(f"  {setting.tasks:>5}  {size:>7}  {discordance:>5.0%}    {cells}")
    return good


def same_at_the_margin(count: int) -> bool:
    """Models that differ by exactly the margin: the chance of "equivalent"."""
    print(f"\nmodels that differ by the margin called equivalent, level {LEVEL:.0%}")
    print("  tasks  cluster  flips    accuracy")
    good = True
    for size in (1, 2):
        for tasks, discordance in ((1000, 0.05), (5000, 0.1)):
            setting = Setting(tasks, size, discordance=discordance, effect=0.02)
            found = Simulation(setting, seed=2).verdicts(count)["accuracy"]
            value = share(found, Verdict.EQUIVALENT)
            good = good and value <= LEVEL + ERRORS * monte_carlo_error(LEVEL, count)
            print(f"  {tasks:>5}  {size:>7}  {discordance:>5.0%}    {shown(value, count)}")
    return good


def claims() -> Iterator[Setting]:
    """Settings in which the tool claims a power of 80 %."""
    for size in (1, 2):
        for tasks in TASKS:
            for discordance in DISCORDANCES:
                blank = Setting(tasks - tasks % size, size, discordance=discordance)
                effect = smallest_effect(
                    blank.tasks,
                    blank.tasks // size,
                    discordance,
                    design_effect=blank.design_effect,
                )
                if effect is not None:
                    yield Setting(blank.tasks, size, discordance=discordance, effect=effect)
        for effect, discordance in EFFECTS:
            factor = Setting(0, size).design_effect
            needed = math.ceil(required_tasks(effect, discordance, design_effect=factor))
            yield Setting(needed + needed % size, size, discordance=discordance, effect=effect)


def brier_claims() -> Iterator[Setting]:
    """Settings in which the tool claims a power of 80 % for the Brier score."""
    for size in (1, 2):
        for tasks in TASKS:
            blank = Setting(tasks - tasks % size, size, discordance=0.4)
            spread = smallest_mean(1.0, blank.tasks // size - 1)
            # The effect that is `spread` standard errors, which it makes a little smaller itself.
            variance = blank.design_effect * blank.discordance + BRIER_NOISE**2
            effect = spread * math.sqrt(variance / (blank.tasks + spread**2 * blank.design_effect))
            yield Setting(blank.tasks, size, discordance=0.4, effect=effect)


def power(count: int, metric: str, settings: Iterator[Setting]) -> bool:
    """Real differences: the chance of "better" where 80 % is claimed."""
    print(f"\nreal differences in {metric} found, claimed {POWER:.0%}")
    print("  tasks  cluster  flips  effect    better")
    good = True
    for number, setting in enumerate(settings):
        # Seeds of their own, so that luck in one line is not luck in all.
        found = Simulation(setting, seed=100 + number).verdicts(count)[metric]
        value = share(found, Verdict.BETTER)
        slack = TOLERANCE + ERRORS * monte_carlo_error(POWER, count)
        # Where nearly all flips go one way, more is found than is claimed, and nobody is misled.
        one_way = setting.effect > ONE_WAY * setting.discordance
        off = value < POWER - slack or (value > POWER + slack and not one_way)
        good = good and not off
        print(
            f"  {setting.tasks:>5}  {setting.size:>7}  {setting.discordance:>5.0%}  "
            f"{setting.effect:>6.3f}    {shown(value, count)}{'  off' if off else ''}"
        )
    return good


def shown(value: float, count: int) -> str:
    """A share with twice its Monte-Carlo error."""
    return f"{value:6.1%} ± {2 * monte_carlo_error(value, count):4.1%}"


def main() -> int:
    """Print all tables; 1 when one of them is not as claimed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--pairs", type=int, default=1000, help="simulated pairs a line, twice that for power"
    )
    count = parser.parse_args().pairs
    results = [
        false_alarms(count),
        same_at_the_margin(count),
        # A share near 80 % is less sure than one near 5 %.
        power(2 * count, "accuracy", claims()),
        power(2 * count, "brier_mean", brier_claims()),
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
