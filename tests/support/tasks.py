"""Tasks, answers and records for tests, and the strategies that make up more of them."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from jevexp.core.decision import Decision, ProbsSource
from jevexp.core.record import Record
from jevexp.core.task import Task

LABELS = ("billing", "Account Access", "shipping")
LEVELS = ("poor", "fair", "good", "excellent")


def fields(kind: str, **changes: Any) -> dict[str, Any]:
    """The nine fields of a good task of a kind, with changes."""
    of_kind: dict[str, dict[str, Any]] = {
        "noul": {
            "question": {
                "type": "noul",
                "instructions": "Is it due?",
                "criteria": {"true": "It is due", "false": "It is not"},
            },
            "labels": ["no", "yes"],
            "expected": "yes",
        },
        "choice": {
            "question": {
                "type": "choice",
                "instructions": "What is it about?",
                "criteria": {label: f"about {label}" for label in LABELS},
            },
            "labels": list(LABELS),
            "expected": "billing",
        },
        "score": {
            "question": {
                "type": "score",
                "instructions": "How good is it?",
                "criteria": list(LEVELS),
            },
            "labels": ["0", "1", "2", "3"],
            "expected": 2,
        },
    }
    common: dict[str, Any] = {
        "id": f"{kind}-1",
        "family": f"family of {kind}",
        "state": "An invoice from March.",
        "split": "public",
        "group": None,
        "provenance": {},
    }
    return common | of_kind[kind] | changes


def task(kind: str, **changes: Any) -> Task:
    """A good task of a kind, with changes."""
    return Task.model_validate(fields(kind, **changes))


def answer(probs: Mapping[str, Any] | None, **changes: Any) -> Decision:
    """A provider's answer with a distribution."""
    neutral: dict[str, Any] = {"ok": True, "model": "m-1", "probs": probs}
    return Decision(**neutral | changes)


def label_only(label: str | None) -> Decision:
    """A provider's answer without a distribution."""
    return Decision(ok=True, model="m-1", label=label, probs_source=ProbsSource.LABEL_ONLY)


def failure(
    error: str = "http_error", status_code: int | None = None, request: Any = None
) -> Decision:
    """A known failure."""
    return Decision(ok=False, model="m-1", error=error, status_code=status_code, request=request)


def record(of: Task, **changes: Any) -> Record:
    """A record of an answered, valid and right attempt at a task, with changes."""
    neutral: dict[str, Any] = {
        "task_id": of.id,
        "family": of.family,
        "split": of.split,
        "group": of.group,
        "ts": 1.0,
        "status": "ok",
        "ok": True,
        "valid": True,
        "correct": None if of.gold is None else True,
        "predicted": of.gold,
        "ordinal_ev": None,
        "probs": None,
        "probs_as_returned": None,
        "strict_valid": True,
        "renormalized": False,
        "probs_source": "native",
        "model": "m-1",
        "error": None,
        "schema_error": None,
        "status_code": None,
        "latency_s": 0.5,
        "usage": {},
        "cost_usd": None,
        "cost_basis": "unknown",
        "reserved_usd": 0.02,
        "charged_usd": 0.02,
        "raw_sha256": "0" * 64,
        "runtime": None,
    }
    return Record(**neutral | changes)


def kinds() -> st.SearchStrategy[str]:
    """One of the three kinds of questions."""
    return st.sampled_from(["noul", "choice", "score"])


@st.composite
def scored_tasks(draw: st.DrawFn) -> Task:
    """A task of any kind, with any of its labels as the truth, or none."""
    kind = draw(kinds())
    blank = fields(kind)
    expected = draw(st.sampled_from([None, *blank["labels"]]))
    if kind == "score" and expected is not None:
        expected = int(expected)
    return task(kind, expected=expected)


def numbers() -> st.SearchStrategy[Any]:
    """Everything that a provider may put where a probability belongs."""
    return st.one_of(
        st.floats(0, 1),
        st.sampled_from([0, 1, 0.5, 1 / 3, 0.25, 1e-9, 1 - 1e-9]),
        st.floats(),
        st.integers(),
        st.booleans(),
        st.none(),
        st.text(max_size=5),
        # More digits than Python prints.
        st.just(1).map(lambda one: one << 20_000),
    )


@st.composite
def distributions(
    draw: st.DrawFn, labels: tuple[str, ...], *, off: float = 0.0
) -> dict[str, float]:
    """A distribution over the labels whose sum is up to `off` away from 1."""
    weights = [draw(st.floats(1e-6, 1)) for _ in labels]
    total = sum(weights) / (1 + draw(st.floats(-off, off)))
    return {label: min(w / total, 1.0) for label, w in zip(labels, weights, strict=True)}
