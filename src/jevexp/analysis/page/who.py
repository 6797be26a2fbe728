"""Who the runs are: what differs between them, and what is the same in all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jevexp.analysis.comparison import Comparison, RunStatistics
from jevexp.analysis.runs import FinishedRun


@dataclass(frozen=True, slots=True)
class Value:
    """What is known about one field of one run; `declared` where that is something else."""

    text: str | None
    declared: str | None = None
    contradicted: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """One field of all runs."""

    name: str
    values: Sequence[Value]

    @property
    def differs(self) -> bool:
        """Whether the runs do not all have the same value."""
        return len({value.text for value in self.values}) > 1


def fields_of(comparison: Comparison, runs: Sequence[FinishedRun]) -> list[Field]:
    """What is known about every run: where it is, what it was, what answered, what ran."""
    statistics = comparison.runs
    found = [
        Field(name, [Value(_text(read(run))) for run in statistics])
        for name, read in _OF_STATISTICS.items()
    ]
    settings = dict.fromkeys(
        name for run in statistics for name in run.settings if name not in _OF_STATISTICS
    )
    found += [
        Field(name, [Value(run.settings.get(name)) for run in statistics]) for name in settings
    ]
    found += _identity(statistics)
    software = [dict(_software(run)) for run in runs]
    names = dict.fromkeys(name for one in software for name in one)
    found += [Field(name, [Value(one.get(name)) for one in software]) for name in names]
    return [field for field in found if any(value.text is not None for value in field.values)]


_OF_STATISTICS: dict[str, Any] = {
    "directory": lambda run: run.path,
    "status": lambda run: run.status,
    "started": lambda run: run.started,
    "fingerprint": lambda run: run.fingerprint,
    "identity": lambda run: run.identity and run.identity.replace("_", " "),
    "backend": lambda run: run.backend,
    "harness": lambda run: run.harness,
    "readout": lambda run: ", ".join(run.readouts) or None,
    "concurrency": lambda run: run.concurrency,
    "cost basis": lambda run: ", ".join(run.cost_basis) or None,
}


def _identity(runs: Sequence[RunStatistics]) -> Iterator[Field]:
    for several in zip(*(run.identity_fields for run in runs), strict=True):
        yield Field(
            f"model.{several[0].name}",
            [
                Value(
                    one.value,
                    one.declared if one.declared != one.value else None,
                    one.verdict == "contradicted",
                )
                for one in several
            ],
        )


def _software(run: FinishedRun) -> Iterator[tuple[str, str]]:
    software = run.manifest.software
    commit = software.git_commit or "unknown"
    dirty = ", with changes" if software.git_dirty else ""
    yield "jevexp", f"{software.jevexp} (commit {commit[:12]}{dirty})"
    yield "python", software.python
    yield "platform", software.platform
    for name, version in sorted(software.packages.items()):
        if version is not None:
            yield name, version


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
