"""What went wrong with single tasks, told at a run's end: causes, a raw file each, what to do."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jevexp.backends.causes import Failed, Service
from jevexp.core.decision import ProbsSource
from jevexp.core.json import loads
from jevexp.core.record import Record
from jevexp.errors import InputError
from jevexp.harness.scoring import RESCALE_TOLERANCE
from jevexp.harness.stops import StopReason
from jevexp.settings.backends import DecisionService
from jevexp.store import Manifest, RunDirectory
from jevexp.untrusted.files import read_document

_MOST_KINDS = 3
_SUM = "probs sum to "
_ENDED_BY_THE_LEDGER = frozenset(
    {StopReason.CAP_REACHED, StopReason.LEDGER_UNAVAILABLE, StopReason.OVERCHARGED}
)
# A model's name that can be pasted into any shell as it is.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
ROUNDS = (
    "the service rounds probabilities to two decimals: over many options their sum can miss 1 by "
    f"more than {RESCALE_TOLERANCE:g}, which is no answer, and of equal ones the name decides"
)
# So many different ones that are no twentieths show that it is no chance.
_FEWEST_ROUNDED = 2


@dataclass(slots=True)
class _Kind:
    """The failures of one kind; `sums` are what their probabilities come to, where that is it."""

    first: Record
    count: int = 0
    sums: list[float] = field(default_factory=list)


class Failures:
    """The failures of one run, by kind, the most frequent first.

    Raises InputError: its records cannot be read.
    """

    def __init__(self, directory: RunDirectory, manifest: Manifest) -> None:
        self._directory = directory
        self._manifest = manifest
        self._service = service_of(manifest.config.resolved["backend"])
        kinds: dict[tuple[Any, ...], _Kind] = {}
        models: dict[str, None] = {}
        for record in _records(directory):
            if record.ok:
                models.setdefault(record.model)
            if not (record.ok and record.valid):
                kind = kinds.setdefault(_kind_of(record), _Kind(record))
                kind.count += 1
                if _is_of_the_sum(record):
                    kind.sums.append(math.fsum((record.probs_as_returned or {}).values()))
        self._models = list(models)
        self._kinds = sorted(kinds.values(), key=lambda kind: -kind.count)
        self._failed = [self._read(kind.first) for kind in self._kinds if not kind.first.ok]

    def lines(self) -> Iterator[str]:
        """What went wrong, with a raw file of each kind and what can be done about it."""
        for kind in self._kinds[:_MOST_KINDS]:
            failed = None if kind.first.ok else self._read(kind.first)
            yield f"{kind.count} × {failed.cause if failed else _fault(kind)}"
            yield f"  see {self._directory.raw_file(kind.first.task_id)}"
            if failed and (todo := failed.todo(self._service)):
                yield f"  {todo}"
        if (rest := len(self._kinds) - _MOST_KINDS) > 0:
            yield f"and {rest} more kinds of failure"
        if self._manifest.stop_reason == StopReason.IDENTITY_CHANGED and self._models:
            named, now = self._manifest.backend.description.get("model"), self._models[-1]
            before = f"{named} was there" if named else f"{self._models[0]} answered"
            alias = now if _PLAIN_NAME.fullmatch(now) else "NAME"
            yield f"{before} first, then {now} answered: start a new run with model.alias={alias}"

    @property
    def can_go_on(self) -> bool:
        """Whether resuming the run can bring more answers, as far as its failures tell."""
        stop, counts = self._manifest.stop_reason, self._manifest.counts
        if stop == StopReason.IDENTITY_CHANGED:
            return False
        unattempted = counts.attempted < counts.requested
        if not self._failed or (unattempted and (stop is None or stop in _ENDED_BY_THE_LEDGER)):
            return True
        # Another address or key may be given then, which pays where there are answers to keep.
        return any(
            not failed.lasts or (counts.answered and failed.of_the_place) for failed in self._failed
        )

    def _read(self, record: Record) -> Failed:
        """A failed attempt with what its raw file holds, if that can be read."""
        response = None
        try:
            path = self._directory.raw_file(record.task_id)
            raw = loads(read_document(path, follow_links=False))
            response = raw.get("response") if isinstance(raw, dict) else None
        except (InputError, OSError, ValueError):
            pass
        return Failed(record.error or "unknown error", record.status_code, response)


def _records(directory: RunDirectory) -> Iterator[Record]:
    """The records; none where the run ended before its first."""
    try:
        yield from directory.records()
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise InputError(str(error)) from error


def service_of(backend: Mapping[str, Any]) -> Service:
    """Where a backend asks, by its settings, of which a manifest may hold only some."""
    kind = backend.get("kind")
    at = "backend.server" if kind == "llama_cpp" else "backend"
    place = (backend.get("server") or {}) if kind == "llama_cpp" else backend
    url = place.get("base_url")
    path = backend.get("path", "/v1/systemone" if kind == "systemone" else None)
    if path is not None:
        url = DecisionService.model_construct(**{"base_url": None, **backend, "path": path}).address
    return Service(url, at, place.get("key_env"))


def are_rounded(answers: Iterable[Mapping[str, Any] | None]) -> bool:
    """Whether probabilities, as a service returned them, have two decimals at most."""
    percents = [
        p * 100
        for probs in answers
        for p in (probs or {}).values()
        if isinstance(p, int | float) and 0 < p < 1
    ]
    telling = {round(p) for p in percents if round(p) % 5}
    rounded = all(math.isclose(p, round(p), abs_tol=1e-9) for p in percents)
    return rounded and len(telling) >= _FEWEST_ROUNDED


def may_round(status: int | None, source: str) -> bool:
    """Whether an answer is a service's own; a model's words are often round."""
    return status is not None and source == ProbsSource.NATIVE


def _is_of_the_sum(record: Record) -> bool:
    return record.ok and (record.schema_error or "").startswith(_SUM)


def _kind_of(record: Record) -> tuple[Any, ...]:
    if not record.ok:
        return record.error, record.status_code
    return (_SUM if _is_of_the_sum(record) else record.schema_error,)


def _fault(kind: _Kind) -> str:
    """What is wrong with answers that are no distribution."""
    if not kind.sums:
        return kind.first.schema_error or "invalid"
    sums = " to ".join(dict.fromkeys(f"{total:.4g}" for total in (min(kind.sums), max(kind.sums))))
    return f"probabilities that sum to {sums}, and up to {RESCALE_TOLERANCE:g} off 1 is accepted"
