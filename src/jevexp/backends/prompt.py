"""A question as one user message, and the symbols that its options are answered with."""

import string
from collections.abc import Iterable
from dataclasses import dataclass

from jevexp.core.decision import Request
from jevexp.core.task import Kind, as_text

# Goes up with every change that moves a single byte of a prompt.
PROMPT_VERSION = "1"
LETTERS = string.ascii_uppercase + string.ascii_lowercase
DIGITS = string.digits
MOST_OPTIONS = len(LETTERS)

# What opens a model's thinking, and what ends it again without a thought.
_THINKING = {
    "<think>": "\n</think>\n\n",
    "<thinking>": "\n</thinking>\n\n",
    "[THINK]": "[/THINK]",
    "<|channel>thought": "\n<channel|>",
}


@dataclass(frozen=True, slots=True)
class Message:
    """The content of the one user message.

    `symbols` maps each label to what the model answers for it. `ending` is the content's last
    part, the same for every question with the same symbols.
    """

    content: str
    ending: str
    symbols: dict[str, str]


def message(request: Request) -> Message:
    """The message for `request`, which has 1 to `MOST_OPTIONS` options.

    Neither the task's id nor a key, a family or the model's name is in it: renaming one of them
    must not move an answer.
    """
    question, descriptions = request.question, request.question.descriptions
    style, symbols = "letter", dict(zip(question.options, LETTERS, strict=False))
    if question.type is Kind.NOUL:
        style, symbols = "word", {label: label for label in question.options}
    elif question.type is Kind.SCORE and len(question.options) <= len(DIGITS):
        style, symbols = "digit", dict(zip(question.options, DIGITS, strict=False))
    ending = f"\n\n{_CLOSING[question.type, style]}"
    lines = []
    # A yes comes first, whereas labels are sorted.
    for label in ("yes", "no") if question.type is Kind.NOUL else question.options:
        shown_label = label if question.type is Kind.CHOICE else ""
        words = " - ".join(part for part in (shown_label, descriptions[label]) if part)
        lines.append(f"{symbols[label]}: {words}" if words else symbols[label])
    return Message(user_content(request, lines) + ending, ending, symbols)


def user_content(request: Request, lines: Iterable[str]) -> str:
    """State and question as text, with a line for each option."""
    question = request.question
    return "\n\n".join(
        [
            "Read the following and then answer one question about it.",
            as_text(request.state),
            f"Question: {question.instructions}",
            "\n".join([_HEADINGS[question.type], *lines]),
        ]
    )


def without_thinking(prompt: str) -> str:
    """The rendered prompt, its thinking closed where the template left it open."""
    stripped = prompt.rstrip()
    for opened, closed in _THINKING.items():
        if stripped.endswith(opened):
            return stripped + closed
    return prompt


_HEADINGS = {
    Kind.NOUL: "Possible answers:",
    Kind.CHOICE: "Possible answers:",
    Kind.SCORE: "Possible levels, from lowest to highest:",
}
_CLOSING = {
    (Kind.NOUL, "word"): "Answer with one word only, yes or no.",
    (Kind.CHOICE, "letter"): "Answer with the letter of the best answer only.",
    (Kind.SCORE, "digit"): "Answer with the number of the best level only.",
    (Kind.SCORE, "letter"): "Answer with the letter of the best level only.",
}
