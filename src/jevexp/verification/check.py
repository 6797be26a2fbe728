"""One check of a run directory: what it covers, what came of it, and where it failed."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from jevexp.core.json import dumps
from jevexp.store.directory import MANIFEST

# Enough to see what is wrong; a run may have a hundred thousand records.
MOST_KEPT = 20
# How far two ways to sum the same numbers may be apart.
_TOLERANCE = 1e-12
_LONGEST = 80


class Result(StrEnum):
    """What came of a check."""

    PASS = "pass"  # noqa: S105  no secret
    FAIL = "fail"
    NOT_CHECKED = "not checked"
    """What it needs is not here. Never a pass."""


class State(StrEnum):
    """What came of a whole run directory."""

    VERIFIED = "verified"
    """No check failed, and the run has ended and sealed its directory."""
    INCOMPLETE = "incomplete"
    """No check failed, and the run never got as far as to seal its directory."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Failure:
    """Where a check failed and why; `line` counts from 1 and is null where it is about no line."""

    file: str
    line: int | None
    message: str

    @property
    def place(self) -> str:
        """File and line, as editors and compilers write them."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(slots=True)
class Check:
    """Collects what one check finds.

    Attributes:
        name: short, and the same in every version.
        covers: what is checked, in words.
        count: how many things were looked at.
        failed: how many failures there were; `failures` holds the first `MOST_KEPT`.
        notes: what a reader has to know beside the result.
        reason: why nothing could be checked; null where something was.
    """

    name: str
    covers: str
    count: int = 0
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reason: str | None = None

    @property
    def result(self) -> Result:
        """Fail where anything failed, not checked where nothing could be looked at."""
        if self.failed:
            return Result.FAIL
        return Result.PASS if self.reason is None else Result.NOT_CHECKED

    def fail(self, file: str, message: str, *, line: int | None = None) -> None:
        """Something is not as it has to be."""
        self.failed += 1
        if len(self.failures) < MOST_KEPT:
            self.failures.append(Failure(file, line, message))

    def expect(self, field: str, found: Any, expected: Any) -> None:
        """Compare a field of the manifest; fails where the two differ, if only by their types."""
        self.count += 1
        if type(found) is not type(expected) or found != expected:
            self.fail(MANIFEST, f"{field}: {shown(found)}, expected {shown(expected)}")

    def guarded(self, file: str, *, line: int | None = None) -> "_Guard":
        """Whatever breaks in here, over a stranger's file, is a failure of this check."""
        return _Guard(self, file, line)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        start = {"name": self.name, "covers": self.covers, "result": self.result.value}
        return start | asdict(self)


@dataclass(frozen=True, slots=True)
class _Guard:
    check: Check
    file: str
    line: int | None

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, Exception) or isinstance(error, MemoryError):
            return False
        if isinstance(error, OSError):
            message = f"cannot be read: {error.strerror or type(error).__name__}"
        elif isinstance(error, KeyError):
            message = f"the field {shown(error.args[0] if error.args else '')} is missing"
        else:
            cause = ": ".join([type(error).__name__, *str(error).splitlines()[:1]])
            message = f"cannot be read: {cause[:200]}"
        self.check.fail(self.file, message, line=self.line)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What verifying the run directory `path` came to.

    Attributes:
        run: the run's name in its manifest; null where that cannot be read.
        status: how the run ended, by its manifest.
        incomplete: why the directory was never sealed; null where it was.
        checks: in the order in which they build on each other.
        not_covered: files that no checksum of the run's covers.
    """

    path: Path
    run: str | None
    status: str | None
    incomplete: str | None
    checks: tuple[Check, ...]
    not_covered: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        """Failed where any check failed."""
        if any(check.result is Result.FAIL for check in self.checks):
            return State.FAILED
        return State.VERIFIED if self.incomplete is None else State.INCOMPLETE

    def check(self, name: str) -> Check:
        """The check of that name; raises KeyError: there is none."""
        return {check.name: check for check in self.checks}[name]

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "path": str(self.path),
            "run": self.run,
            "status": self.status,
            "state": self.state.value,
            "incomplete": self.incomplete,
            "checks": [check.as_dict() for check in self.checks],
            "not_covered": list(self.not_covered),
        }


def shown(value: Any) -> str:
    """A value in a message, cut where it is long; what is printed is stripped by who prints it."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def differences(stored: Any, computed: Any, at: str = "") -> Iterator[str]:
    """Where two summaries differ, in one line each."""
    if isinstance(stored, Mapping) and isinstance(computed, Mapping):
        for name in dict.fromkeys([*stored, *computed]):
            place = f"{at}.{name}" if at else str(name)
            if name not in stored or name not in computed:
                yield f"{place}: only {'computed' if name in computed else 'stored'}"
            else:
                yield from differences(stored[name], computed[name], place)
    elif isinstance(stored, list) and isinstance(computed, list) and len(stored) == len(computed):
        for index, pair in enumerate(zip(stored, computed, strict=True)):
            yield from differences(*pair, f"{at}[{index}]")
    elif not same(stored, computed):
        yield f"{at}: stored {dumps(stored)}, computed {dumps(computed)}"


def same(left: Any, right: Any) -> bool:
    """Whether two plain values are the same, numbers up to how they were summed."""
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if is_number(left) and is_number(right):
        return math.isclose(left, right, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return type(left) is type(right) and bool(left == right)


def is_number(value: Any) -> bool:
    """Whether a value is a number in JSON, which a Boolean is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)
