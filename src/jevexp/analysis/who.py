"""Who the runs of a comparison are: short names, what differs between them, what is the same."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jevexp.analysis.comparison import Comparison, IdentityField, RunStatistics
from jevexp.analysis.runs import FinishedRun
from jevexp.core.identity import FieldReport, in_words
from jevexp.store import Manifest
from jevexp.store.manifest import differing_overrides

# A longer one would be cut in plots and tables.
_LONGEST_LABEL = 32


def labels(runs: Sequence[FinishedRun]) -> list[str]:
    """The model's name for each run; where several share it, with what differs between them.

    What differs are the overrides, as in `fake accuracy=0.9`; where they do not tell the runs
    apart, or are too long, the runs are numbered.
    """
    labels = [run.manifest.model.declared.name for run in runs]
    same: dict[str, list[int]] = {}
    for index, name in enumerate(labels):
        same.setdefault(name, []).append(index)
    for name, places in same.items():
        if len(places) > 1:
            for place, words in zip(places, _apart([runs[at] for at in places]), strict=True):
                labels[place] = f"{name} {words}"
    return labels


def _apart(runs: Sequence[FinishedRun]) -> list[str]:
    """What tells apart runs of models of one name."""
    settings_in_words = [
        ", ".join(f"{field.rpartition('.')[2]}={value}" for field, value in settings.items())
        for settings in differing_settings(runs)
    ]
    fits = all(settings_in_words) and max(map(len, settings_in_words)) <= _LONGEST_LABEL
    numbers = [f"#{number}" for number in range(1, len(runs) + 1)]
    unique = len(set(settings_in_words)) == len(settings_in_words)
    return settings_in_words if fits and unique else numbers


def differing_settings(runs: Sequence[FinishedRun]) -> list[dict[str, str]]:
    """For each run its overrides that are not the same in all of them."""
    return differing_overrides([run.manifest for run in runs])


def identity_fields(runs: Sequence[FinishedRun]) -> list[list[IdentityField]]:
    """For each run every field that any of them has, in one order, marked where they differ."""
    given = [_fields(run.manifest) for run in runs]
    names = sorted({name for fields in given for name in fields})
    values = {name: [known(run.manifest, name) for run in runs] for name in names}
    return [
        [
            IdentityField(
                name=name,
                verdict=fields[name].status.value if name in fields else None,
                value=text_of(values[name][index]),
                declared=text_of(fields[name].declared if name in fields else None),
                observed=text_of(fields[name].strongest if name in fields else None),
                differs=len({text_of(value) for value in values[name]}) > 1,
            )
            for name in names
        ]
        for index, fields in enumerate(given)
    ]


def known(manifest: Manifest, name: str) -> Any:
    """What the strongest source says about an identity field, else the claim; None for neither."""
    return manifest.identity.known(name) if manifest.identity else None


def _fields(manifest: Manifest) -> dict[str, FieldReport]:
    return manifest.identity.fields if manifest.identity else {}


def text_of(value: Any) -> str | None:
    """A value in the words of the terminal; None for none."""
    return None if value is None else in_words(value)


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
    fields = [
        Field(name, [Value(_text(read(run))) for run in statistics])
        for name, read in _OF_STATISTICS.items()
    ]
    settings = dict.fromkeys(
        name for run in statistics for name in run.settings if name not in _OF_STATISTICS
    )
    fields += [
        Field(name, [Value(run.settings.get(name)) for run in statistics]) for name in settings
    ]
    fields += _identity(statistics)
    software = [dict(_software(run)) for run in runs]
    names = dict.fromkeys(name for versions in software for name in versions)
    fields += [Field(name, [Value(versions.get(name)) for versions in software]) for name in names]
    return [field for field in fields if any(value.text is not None for value in field.values)]


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
    for fields in zip(*(run.identity_fields for run in runs), strict=True):
        yield Field(
            f"model.{fields[0].name}",
            [
                Value(
                    field.value,
                    field.declared if field.declared != field.value else None,
                    field.verdict == "contradicted",
                )
                for field in fields
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
