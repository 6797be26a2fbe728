"""One of our backends as the pinned harness wants an adapter to be."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Any

from jevexp.backends.protocol import Backend, Estimates, Prepares
from jevexp.core.decision import Decision, Request
from jevexp.core.json import representable
from jevexp.harness.tariff import Tariff


class Adapter:
    """Has the attributes that the harness reads, and hands everything to a backend.

    `cost_basis` is there only where one is known, since the harness has its own word for that.
    `asked` counts the tasks that were put to the backend.

    Args:
        backend: an open provider.
        requests: what is asked for each task id; the harness's tasks hold gold labels as well.
        tariff: prices in US dollars per million tokens.
        result: the harness's DecisionResult.
        next_task: called before each reservation; an exception from it ends the run.
        waiting: entered while the provider is waited for.
    """

    def __init__(
        self,
        backend: Backend,
        requests: Mapping[str, Request],
        tariff: Tariff,
        *,
        result: Any,
        next_task: Callable[[], None],
        waiting: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.name = backend.name
        self.price_input_per_m = tariff.input_per_m
        self.price_output_per_m = tariff.output_per_m
        if tariff.basis is not None:
            self.cost_basis = tariff.basis
        self.asked = 0
        self._backend = backend
        self._requests = requests
        self._result = result
        self._next_task = next_task
        self._waiting = waiting

    def reserve_estimate(self, task: Any) -> float | None:
        """The backend's own estimate in US dollars, or None."""
        self._next_task()
        if not isinstance(self._backend, Estimates):
            return None
        return self._backend.reserve_estimate(self._requests[task.id])

    def run(self, task: Any) -> Any:
        """Ask once; an exception goes on to the harness, which keeps its class name only."""
        self.asked += 1
        with self._waiting():
            decision = self._backend.decide(self._requests[task.id])
        return self._result(
            adapter=self.name,
            ok=decision.ok,
            probs=representable(decision.probs),
            probs_source=decision.probs_source.value,
            label=decision.label,
            model=representable(decision.model),
            status=decision.status_code,
            error=decision.error,
            usage=representable(decision.usage),
            request_body=representable(decision.request),
            raw=_raw(decision),
        )


class PreparingAdapter(Adapter):
    """Of a backend that has work to do before the clock starts."""

    def prepare(self, task: Any) -> None:
        """Do that work; what goes wrong is not told, since the harness would print it."""
        if isinstance(self._backend, Prepares):
            with suppress(Exception), self._waiting():
                self._backend.prepare(self._requests[task.id])


def _raw(decision: Decision) -> Any:
    """What came back, with `runtime` where the harness looks for it."""
    raw = representable(decision.response)
    if decision.runtime is not None and isinstance(raw, dict):
        raw["runtime"] = representable(decision.runtime)
    return raw
