"""Who answered, under which conditions, and what a reader must know of that before the numbers."""

import ipaddress
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

from jevexp.analysis.comparison import Comparison, IdentityField, RunStatistics
from jevexp.analysis.metrics import METRICS
from jevexp.analysis.runs import FinishedRun
from jevexp.core.identity import ClaimStatus, in_words
from jevexp.store import Manifest, RunStatus
from jevexp.store.manifest import differing_overrides

# A longer one would be cut in plots and tables.
_LONGEST_LABEL = 32


def labels(runs: Sequence[FinishedRun]) -> list[str]:
    """The model's name for each run; where several share it, with what differs between them.

    What differs are the overrides, as in `fake accuracy=0.9`; where they do not tell the runs
    apart, or are too long, the runs are numbered.
    """
    labels = [run.manifest.model.declared.name for run in runs]
    same = defaultdict[str, list[int]](list)
    for index, name in enumerate(labels):
        same[name].append(index)
    for name, places in same.items():
        if len(places) == 1:
            continue
        suffixes = [
            ", ".join(f"{field.rpartition('.')[2]}={value}" for field, value in settings.items())
            for settings in differing_settings([runs[place] for place in places])
        ]
        fits = all(suffixes) and max(map(len, suffixes)) <= _LONGEST_LABEL
        if not fits or len(set(suffixes)) < len(suffixes):
            suffixes = [f"#{number}" for number in range(1, len(places) + 1)]
        for place, suffix in zip(places, suffixes, strict=True):
            labels[place] = f"{name} {suffix}"
    return labels


def differing_settings(runs: Sequence[FinishedRun]) -> list[dict[str, str]]:
    """For each run its overrides that are not the same in all of them."""
    return differing_overrides([run.manifest for run in runs])


def identity_fields(runs: Sequence[FinishedRun]) -> list[list[IdentityField]]:
    """For each run every field that any of them has, in one order, marked where they differ."""
    reports = [run.manifest.identity.fields if run.manifest.identity else {} for run in runs]
    names = sorted(set(chain.from_iterable(reports)))
    values = {name: [text_of(known_field(run.manifest, name)) for run in runs] for name in names}
    return [
        [
            IdentityField(
                name=name,
                verdict=fields[name].status.value if name in fields else None,
                value=values[name][index],
                declared=text_of(fields[name].declared if name in fields else None),
                observed=text_of(fields[name].strongest if name in fields else None),
                differs=len(set(values[name])) > 1,
            )
            for name in names
        ]
        for index, fields in enumerate(reports)
    ]


def known_field(manifest: Manifest, name: str) -> Any:
    """What the strongest source says about an identity field, else the claim; None for neither."""
    return manifest.identity.known(name) if manifest.identity else None


def text_of(value: Any) -> str | None:
    """A value in the words of the terminal; None for none."""
    return None if value is None else in_words(value)


def _described(run: FinishedRun, *keys: str) -> Any:
    return _part(run.manifest.backend.description, *keys)


def _configured(run: FinishedRun, key: str) -> Any:
    if _described(run, "managed") is not True:
        return None
    return _part(run.manifest.config.resolved, "backend", "server", key)


def _part(value: Any, *keys: str) -> Any:
    """What stands under nested keys; descriptions are what a server said, and may be anything."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _host(run: FinishedRun) -> str:
    """The host that answered; "here" for the machine of the run itself."""
    url = str(_described(run, "base_url") or "")
    try:
        name = urlsplit(url).hostname
    except ValueError:
        return url
    if name is None or name == "localhost":
        return "here"
    try:
        return "here" if ipaddress.ip_address(name).is_loopback else name
    except ValueError:
        return name


Conditions = Mapping[str, Callable[[FinishedRun], Any]]

_OF_RUN: Conditions = {
    "fingerprints": lambda run: run.manifest.fingerprint and run.manifest.fingerprint.value,
    "harnesses": lambda run: run.manifest.harness.name,
    "readouts": lambda run: ", ".join(run.readouts) or "none",
    "concurrency": lambda run: run.manifest.concurrency,
    "machines": lambda run: run.manifest.software.platform,
}
_OF_SECONDS: Conditions = {
    "concurrency": lambda run: run.manifest.concurrency,
    "machines": lambda run: run.manifest.software.platform,
    "hosts of the server": _host,
    "kinds of backend": lambda run: _described(run, "kind"),
}
# What changes how long an answer takes: what a server says of itself, what it was told of caching
# (managed servers and llama.cpp's are told not to), and what it was started with here.
_OF_SERVER: Conditions = {
    "slot counts": lambda run: _described(run, "total_slots"),
    "contexts": lambda run: _described(run, "n_ctx"),
    "cache types of keys": lambda run: _described(run, "cache_type_k"),
    "cache types of values": lambda run: _described(run, "cache_type_v"),
    "server builds": lambda run: _described(run, "library"),
    "prompt caching": lambda run: _described(run, "features", "extra_fields", "cache_prompt"),
    "threads": lambda run: _configured(run, "threads"),
    "GPU layers": lambda run: _configured(run, "gpu_layers"),
}


def remarks(baseline: FinishedRun, candidate: FinishedRun) -> list[str]:
    """What a reader must know about two runs before their numbers: a line each."""
    lines = []
    for side, run in (("baseline", baseline), ("candidate", candidate)):
        if run.manifest.status is not RunStatus.COMPLETE:
            lines.append(f"the {side} is {run.manifest.status}")
        if run.manifest.identity and run.manifest.identity.status is ClaimStatus.CONTRADICTED:
            lines.append(f"the identity of the {side} is contradicted")
        lines.extend(f"the {side}: {warning}" for warning in run.manifest.backend.warnings)
        if cut := run.manifest.counts.truncated_words:
            lines.append(f"the {side}: {cut}")
    if baseline.tasks is None and candidate.tasks is None:
        missing = (f"no {metric.heading}" for metric in METRICS.values() if metric.of_task)
        lines.append(f"the tasks are not here: {', '.join(missing)}")
    return [*lines, *_differing(_OF_RUN, baseline, candidate, unknown="none")]


def latency_warnings(runs: Sequence[FinishedRun], first: int, second: int) -> list[str]:
    """Why the seconds of two of the runs may not be comparable: a line each.

    `first` and `second` are their indices; a third run may have been in the way.
    """
    baseline, candidate = runs[first], runs[second]
    lines = list(_differing(_OF_SECONDS, baseline, candidate))
    # Two kinds describe themselves in different words.
    if _described(baseline, "kind") == _described(candidate, "kind"):
        lines.extend(_differing(_OF_SERVER, baseline, candidate))
    for side, run in (("baseline", baseline), ("candidate", candidate)):
        others = [other.manifest.run for other in runs if other is not run and _overlap(run, other)]
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            lines.append(f"the {side} ran at the same time as {others[0]}{more} on one host")
        if run.manifest.resumed is not None:
            lines.append(f"the {side} was resumed: its seconds are from several sessions")
    return lines


def _differing(
    conditions: Conditions, first: FinishedRun, second: FinishedRun, unknown: str = "unknown"
) -> Iterator[str]:
    for name, read in conditions.items():
        values = [unknown if (value := read(run)) is None else value for run in (first, second)]
        if values[0] != values[1]:
            verb = "differ" if name.split()[0].endswith("s") or name.endswith("s") else "differs"
            yield f"{name} {verb}: {values[0]}, then {values[1]}"


def _overlap(run: FinishedRun, other: FinishedRun) -> bool:
    """Whether two runs asked one host at the same time, as far as their manifests tell."""
    # Nothing in a manifest names a machine; two with one platform string are taken for one.
    host = _host(run)
    platforms = {side.manifest.software.platform for side in (run, other)}
    if host != _host(other) or (host == "here" and len(platforms) > 1):
        return False
    try:
        (began, ended), (other_began, other_ended) = (
            [
                datetime.fromisoformat(time or "").replace(tzinfo=UTC)
                for time in (side.manifest.started, side.manifest.finished)
            ]
            for side in (run, other)
        )
    except ValueError:
        # One never ended, or says no time.
        return False
    return began < other_ended and other_began < ended


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


_OF_STATISTICS: dict[str, Callable[[RunStatistics], Any]] = {
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


def fields_of(comparison: Comparison, runs: Sequence[FinishedRun]) -> list[Field]:
    """What is known about every run: where it is, what it was, what answered, what ran."""
    groups: tuple[list[dict[str, Value]], ...] = (
        [
            {
                name: Value(None if (value := read(run)) is None else str(value))
                for name, read in _OF_STATISTICS.items()
            }
            for run in comparison.runs
        ],
        [
            {
                name: Value(value)
                for name, value in run.settings.items()
                if name not in _OF_STATISTICS
            }
            for run in comparison.runs
        ],
        [
            {
                f"model.{field.name}": Value(
                    field.value,
                    field.declared if field.declared != field.value else None,
                    field.verdict == "contradicted",
                )
                for field in run.identity_fields
            }
            for run in comparison.runs
        ],
        [{name: Value(version) for name, version in _software(run)} for run in runs],
    )
    fields = [
        Field(name, [run.get(name, Value(None)) for run in group])
        for group in groups
        for name in dict.fromkeys(chain.from_iterable(group))
    ]
    return [field for field in fields if any(value.text is not None for value in field.values)]


def _software(run: FinishedRun) -> Iterator[tuple[str, str | None]]:
    software = run.manifest.software
    dirty = ", with changes" if software.git_dirty else ""
    commit = (software.git_commit or "unknown")[:12]
    yield "jevexp", f"{software.jevexp} (commit {commit}{dirty})"
    yield "python", software.python
    yield "platform", software.platform
    yield from sorted(software.packages.items())
