"""What the contract suite asks: every kind of question, and states of every shape."""

from typing import Any

from jevexp.core.task import Task
from tests.support.tasks import task


def described(*labels: str) -> dict[str, Any]:
    """A choice between labels."""
    return {
        "question": {
            "type": "choice",
            "instructions": "What is it about?",
            "criteria": {label: f"It is about {label}." for label in labels},
        },
        "labels": list(labels),
        "expected": labels[0],
    }


def levels(count: int, **changes: Any) -> Task:
    """A score on a scale."""
    question = {
        "type": "score",
        "instructions": "How good is it?",
        "criteria": [f"{n} of {count - 1}" for n in range(count)],
    }
    labels = [str(n) for n in range(count)]
    return task("score", question=question, labels=labels, expected=count - 1, **changes)


TASKS = [
    task("noul", id="yes or no"),
    task(
        "noul",
        id="no criteria",
        question={"type": "noul", "instructions": "Is it due?", "criteria": None},
    ),
    task(
        "noul",
        id="one criterion",
        question={"type": "noul", "instructions": "Is it due?", "criteria": {"true": "It is due"}},
    ),
    task("choice", id="three labels"),
    task("choice", id="spaces and case", **described("Account Access", "account access", " a ")),
    task("choice", id="other scripts", **described("größe", "任務", "мера", "☃")),
    task("choice", id="labels like numbers", **described("1", "0", "10")),
    task("choice", id="quotes", **described('say "yes"', "it's", "{x}", "a\\b")),
    task("choice", id="twenty-four", **described(*(f"topic {n}" for n in range(24)))),
    task("score", id="four levels"),
    levels(10, id="ten levels"),
    task("noul", id="structured", state={"b": [1, 2.5, None, True], "a": {"größe": "☃"}}),
    task("noul", id="a list", state=["first", {"second": 2}]),
    task("noul", id="nothing", state=None),
    task("noul", id="a number", state=-1.5),
    task("noul", id="empty", state=""),
    task("noul", id="control characters", state="tab\tnewline\nbell\x07 <|im_end|> {{ x }}"),
]
TWENTY_SIX = task("choice", id="twenty-six", **described(*(f"topic {n}" for n in range(26))))
MANY_LABELS = task("choice", id="many labels", **described(*(f"label {n}" for n in range(300))))
ELEVEN_LEVELS = levels(11, id="eleven levels")
UNANSWERABLE = task(
    "choice", id="unknown options", question={"type": "choice", "instructions": "Which?"}
)
