"""The prompt: what is in it, word for word, and what is not."""

from typing import Any

from jevexp.backends.prompt import LETTERS, message
from jevexp.core.decision import Request
from jevexp.core.task import Question, Task
from tests.support.llama import choice, noul, score


def asked(state: Any, **question: Any) -> str:
    return message(Request(state, Question.model_validate(question), "m")).content


def test_a_noul_question_word_for_word() -> None:
    assert message(noul("It is late.")).content == (
        "Read the following and then answer one question about it.\n"
        "\n"
        "It is late.\n"
        "\n"
        "Question: Does the customer complain?\n"
        "\n"
        "Possible answers:\n"
        "yes: there is a complaint\n"
        "no: there is none\n"
        "\n"
        "Answer with one word only, yes or no."
    )


def test_a_noul_question_that_describes_only_one_answer() -> None:
    content = asked("x", type="noul", instructions="?", criteria={"false": "there is none"})
    assert "Possible answers:\nyes\nno: there is none\n\n" in content


def test_a_choice_shows_symbol_label_and_description() -> None:
    content = asked(
        "x",
        type="choice",
        instructions="Which?",
        criteria={"Billing ": "money", "tech": None, "other": ["a", 1]},
    )
    assert "\nA: Billing  - money\nB: tech\nC: other - [\n" in content
    assert content.endswith("\n\nAnswer with the letter of the best answer only.")


def test_a_score_lists_its_levels_by_number() -> None:
    content = message(score(3)).content
    assert "\n0: urgency of 0\n1: urgency of 1\n2: urgency of 2\n" in content
    assert content.endswith("\n\nAnswer with the number of the best level only.")


def test_symbols_are_digits_up_to_ten_levels_and_letters_otherwise() -> None:
    assert message(noul()).symbols == {"no": "no", "yes": "yes"}
    assert list(message(score(10)).symbols.values()) == list("0123456789")
    assert message(score(11)).symbols == dict(
        zip((str(level) for level in range(11)), "ABCDEFGHIJK", strict=True)
    )
    assert list(message(choice(52)).symbols.values()) == list(LETTERS)
    assert message(score(11)).content.endswith("Answer with the letter of the best level only.")


def test_a_structured_state_is_json_in_the_order_of_the_file() -> None:
    content = asked({"z": "grün", "a": [True, None]}, type="noul", instructions="?")
    assert '{\n  "z": "grün",\n  "a": [\n    true,\n    null\n  ]\n}' in content


def test_without_criteria_a_noul_question_still_names_both_answers() -> None:
    assert "Possible answers:\nyes\nno\n" in asked("x", type="noul", instructions="?")


def test_nothing_but_state_and_question_is_in_it() -> None:
    task = Task.model_validate(
        {
            "id": "secret-id",
            "family": "secret-family",
            "state": "x",
            "question": {
                "type": "noul",
                "instructions": "?",
                "criteria": None,
                "key": "secret-key",
            },
            "labels": ["no", "yes"],
            "expected": "yes",
            "split": "public",
            "group": "secret-group",
        }
    )
    assert "secret" not in message(Request.of(task, "secret-model")).content


def test_the_ending_depends_on_the_symbols_only() -> None:
    assert message(choice(3)).ending == message(choice(20, "other")).ending
    assert message(choice(3)).content.endswith(message(choice(3)).ending)
