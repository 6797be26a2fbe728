"""How long a test waits for a scripted server."""

import pytest

# What is asked in vain is asked for so long; an answer may take much longer on a busy machine.
_IN_VAIN_S, _AT_MOST_S = 2.0, 60.0
# Of tests in which nothing comes, or not all of it.
_NOTHING_COMES = ("timeout", "after_a_failure", "drip")


def patience_s(request: pytest.FixtureRequest) -> float:
    """The timeout for the provider of a test, in seconds: short where it has to pass."""
    name = request.node.name
    return _IN_VAIN_S if any(word in name for word in _NOTHING_COMES) else _AT_MOST_S
