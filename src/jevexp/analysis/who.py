"""Who the runs of a comparison are: short names, and the fields in which they differ."""

from collections.abc import Sequence
from typing import Any

from jevexp.analysis.comparison import IdentityField
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
    found = [run.manifest.model.declared.name for run in runs]
    same: dict[str, list[int]] = {}
    for index, name in enumerate(found):
        same.setdefault(name, []).append(index)
    for name, places in same.items():
        if len(places) > 1:
            for place, words in zip(places, _apart([runs[at] for at in places]), strict=True):
                found[place] = f"{name} {words}"
    return found


def _apart(runs: Sequence[FinishedRun]) -> list[str]:
    """What tells apart runs of models of one name."""
    said = [
        ", ".join(f"{field.rpartition('.')[2]}={value}" for field, value in settings.items())
        for settings in differing_settings(runs)
    ]
    fits = all(said) and max(map(len, said)) <= _LONGEST_LABEL
    numbers = [f"#{number}" for number in range(1, len(runs) + 1)]
    return said if fits and len(set(said)) == len(said) else numbers


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
