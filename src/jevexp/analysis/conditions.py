"""Under which conditions runs were made, and what a reader must know before their numbers."""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from jevexp.analysis.metrics import METRICS
from jevexp.analysis.runs import FinishedRun
from jevexp.core.identity import ClaimStatus
from jevexp.store import Manifest, RunStatus

# What a server says of itself that changes how long an answer takes.
_SERVER = (
    ("slot counts", "total_slots"),
    ("contexts", "n_ctx"),
    ("cache types of keys", "cache_type_k"),
    ("cache types of values", "cache_type_v"),
    ("server builds", "library"),
)
# What it was started with here, as configured.
_STARTED = (("threads", "threads"), ("GPU layers", "gpu_layers"))


def remarks(baseline: FinishedRun, candidate: FinishedRun) -> list[str]:
    """What a reader must know about two runs before their numbers: a line each."""
    lines = []
    for side, run in (("baseline", baseline), ("candidate", candidate)):
        status = run.manifest.status
        if status is not RunStatus.COMPLETE:
            lines.append(f"the {side} is {status}")
        if run.manifest.identity and run.manifest.identity.status is ClaimStatus.CONTRADICTED:
            lines.append(f"the identity of the {side} is contradicted")
    if baseline.tasks is None and candidate.tasks is None:
        missing = (f"no {metric.heading}" for metric in METRICS.values() if metric.needs_tasks)
        lines.append(f"the tasks are not here: {', '.join(missing)}")
    lines.extend(
        _differing(
            ("fingerprints", _fingerprint(baseline), _fingerprint(candidate)),
            ("harnesses", _harness(baseline), _harness(candidate)),
            ("readouts", _readouts(baseline), _readouts(candidate)),
            ("concurrency", baseline.manifest.concurrency, candidate.manifest.concurrency),
            ("machines", baseline.manifest.software.platform, candidate.manifest.software.platform),
        )
    )
    return lines


def latency_warnings(runs: Sequence[FinishedRun], first: int, second: int) -> list[str]:
    """Why the seconds of two of the runs may not be comparable: a line each.

    Args:
        runs: all runs of the comparison, since a third one may have been in the way.
        first: index of the baseline.
        second: index of the candidate.
    """
    baseline, candidate = runs[first].manifest, runs[second].manifest
    kinds = [_described(run, "kind") for run in (runs[first], runs[second])]
    lines = list(
        _differing(
            ("concurrency", baseline.concurrency, candidate.concurrency),
            ("machines", baseline.software.platform, candidate.software.platform),
            ("hosts of the server", _host(runs[first]), _host(runs[second])),
            ("kinds of backend", *kinds),
        )
    )
    # Two kinds describe themselves in different words.
    if kinds[0] == kinds[1]:
        lines.extend(_differing(*_settings_of_servers(runs[first], runs[second])))
    for side, index in (("baseline", first), ("candidate", second)):
        others = [
            other.manifest.run
            for place, other in enumerate(runs)
            if place != index and _overlap(runs[index], other)
        ]
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            lines.append(f"the {side} ran at the same time as {others[0]}{more} on one host")
        if runs[index].manifest.resumed is not None:
            lines.append(f"the {side} was resumed: its seconds are from several sessions")
    return lines


def _settings_of_servers(first: FinishedRun, second: FinishedRun) -> Iterator[tuple[str, Any, Any]]:
    for what, key in _SERVER:
        yield what, _described(first, key), _described(second, key)
    yield "prompt caching", _prompt_caching(first), _prompt_caching(second)
    for what, key in _STARTED:
        yield what, _configured(first, key), _configured(second, key)


def _differing(*conditions: tuple[str, Any, Any]) -> Iterator[str]:
    for what, first, second in conditions:
        if first != second:
            verb = "differ" if what.split()[0].endswith("s") or what.endswith("s") else "differs"
            yield f"{what} {verb}: {_shown(first)}, then {_shown(second)}"


def _shown(value: Any) -> str:
    return "unknown" if value is None else str(value)


def _fingerprint(run: FinishedRun) -> str:
    return run.manifest.fingerprint.value if run.manifest.fingerprint else "none"


def _harness(run: FinishedRun) -> str:
    return run.manifest.harness.name


def _readouts(run: FinishedRun) -> str:
    return ", ".join(run.readouts) or "none"


def _described(run: FinishedRun, key: str) -> Any:
    return run.manifest.backend.description.get(key)


def _prompt_caching(run: FinishedRun) -> Any:
    """What the server was told about it; managed servers and llama.cpp's are told not to."""
    return _object(_object(_described(run, "features")).get("extra_fields")).get("cache_prompt")


def _configured(run: FinishedRun, key: str) -> Any:
    if _described(run, "managed") is not True:
        return None
    backend = _object(run.manifest.config.resolved.get("backend"))
    return _object(backend.get("server")).get(key)


def _object(value: Any) -> Mapping[str, Any]:
    """`value`, or nothing: descriptions are what a server said, and may be anything."""
    return value if isinstance(value, dict) else {}


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


def _overlap(run: FinishedRun, other: FinishedRun) -> bool:
    """Whether two runs asked one host at the same time, as far as their manifests tell.

    Nothing in a manifest names a machine; two with one platform string are taken for one.
    """
    first, second = run.manifest, other.manifest
    if _host(run) != _host(other):
        return False
    if _host(run) == "here" and first.software.platform != second.software.platform:
        return False
    window, other_window = _window(first), _window(second)
    if window is None or other_window is None:
        return False
    return window[0] < other_window[1] and other_window[0] < window[1]


def _window(manifest: Manifest) -> tuple[datetime, datetime] | None:
    """From when to when the run lasted; None where it never ended, or says no time."""
    try:
        begun, ended = (
            datetime.fromisoformat(text or "").replace(tzinfo=UTC)
            for text in (manifest.started, manifest.finished)
        )
    except ValueError:
        return None
    return begun, ended
