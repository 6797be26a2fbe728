"""The reference pages name every field that exists, and the documents' links lead somewhere."""

import dataclasses
import importlib
import re
from pathlib import Path

import pytest

from jevexp.analysis import comparison, estimates
from jevexp.analysis.metrics import METRICS
from jevexp.core.record import Record
from jevexp.harness.summary import summarize
from jevexp.settings import Settings, field_names
from jevexp.store import Manifest

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def reference(name: str) -> str:
    return (ROOT / "docs/reference" / name).read_text()


def test_every_configuration_field_is_documented() -> None:
    text = reference("configuration.md")
    # A group's own fields stand in tables; below files and packages they are named in prose.
    missing = [
        name
        for name in field_names(Settings)
        if f"`{name}`" not in text and not re.search(r"files\.|package\.|^\w+$", name)
    ]
    assert [name for name in missing if name not in _PARENTS] == []


# Fields that only hold other fields.
_PARENTS = {"backend.server", "backend.typevet", "backend.template", "backend.readout",
            "model.weights", "model.quantization", "model.chat_template"}  # fmt: skip


def test_every_record_and_summary_field_is_documented() -> None:
    text = reference("artifacts.md")
    names = {*Record.model_fields, *summarize([], []).plain()}
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def test_every_manifest_field_is_documented() -> None:
    text = reference("artifacts.md")
    assert [name for name in field_names(Manifest) if f"`{name.split('.')[-1]}`" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_that_exist(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/explanation/architecture.md"])
def test_places_in_the_repository_that_a_page_names_exist(name: str) -> None:
    places = re.findall(
        r"`((?:src|tests|docs|conf|tools|bench)/[^`\s]*)`", (ROOT / name).read_text()
    )
    assert places
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_every_make_target_is_described_once() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):.*##", makefile, re.M)) - {"help", "install", "run", "ui"}
    described = re.findall(r"^\| `make (\w+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    assert sorted(described) == sorted(targets)


def test_every_field_of_a_comparison_is_documented() -> None:
    text = reference("comparison.md")
    kinds = (
        comparison.Comparison, comparison.RunStatistics, estimates.Estimate, comparison.Bin,
        comparison.Family, comparison.LatencySummary, comparison.Paraphrases,
        comparison.IdentityField, comparison.PairResult, comparison.Flip, comparison.LatencyRatio,
        comparison.MatrixCell, comparison.Mistake, estimates.Difference, estimates.Options,
    )  # fmt: skip
    names = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    # In JSON each metric is a field of its run.
    names = names - {"estimates"} | set(METRICS)
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_LIMIT = re.compile(
    r"^\|[^|]+\| ([0-9][0-9.,e-]*)(?: (\w+))? \| `([\w.]+)\.(\w+)` \|$", re.MULTILINE
)
LIMITS = {
    f"{module}.{name}": (float(number.replace(",", "")) * _UNITS.get(unit, 1), module, name)
    for number, unit, module, name in _LIMIT.findall(reference("limits.md"))
}


def test_every_row_of_the_limits_is_read() -> None:
    rows = [line for line in reference("limits.md").splitlines() if line.endswith("` |")]
    assert len(LIMITS) == len(rows) > 60


@pytest.mark.parametrize(("limit", "module", "name"), LIMITS.values(), ids=LIMITS)
def test_a_limit_is_the_one_that_is_documented(limit: float, module: str, name: str) -> None:
    assert getattr(importlib.import_module(f"jevexp.{module}"), name) == limit
