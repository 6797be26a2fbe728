"""What an answer costs."""

from dataclasses import dataclass
from typing import Any

from jevexp.core.decision import Decision

# Up to here every whole number is a float; nothing real counts as many tokens.
MOST_TOKENS = 2**53


@dataclass(frozen=True, slots=True)
class Tariff:
    """Prices in US dollars per million tokens, null where unknown, and what a cost means."""

    input_per_m: float | None = None
    output_per_m: float | None = None
    basis: str | None = None

    def cost(self, decision: Decision) -> tuple[float | None, str]:
        """The decision's cost in US dollars, or None, and the basis of that statement."""
        if self.input_per_m == 0 and self.output_per_m == 0:
            return 0.0, self.basis or "zero_route_fee_compute_excluded"
        tokens_in = _number(decision.usage.get("input_tokens"))
        tokens_out = _number(decision.usage.get("output_tokens"))
        if (
            decision.ok
            and self.input_per_m is not None
            and self.output_per_m is not None
            and tokens_in is not None
            and tokens_out is not None
        ):
            cost = tokens_in * self.input_per_m / 1e6 + tokens_out * self.output_per_m / 1e6
            return cost, "derived_usage_times_tariff"
        return None, self.basis or "unknown"


def _number(value: Any) -> float | None:
    """A count as reported, or None for anything that cannot be a count."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value <= MOST_TOKENS else None
