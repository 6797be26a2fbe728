"""The shipped demo tasks: pinned, in pairs, and balanced so that no constant answer looks good."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from jevexp.core.json import dumps
from jevexp.core.task import GOLD_KEYS, Kind, Task
from jevexp.datasets import LoadedDataset, LoadedFile, load_dataset
from jevexp.settings import Dataset

CONF = Path(__file__).parents[2] / "conf" / "dataset" / "demo.yaml"
SHA256 = "5224a094c374f4372726fb2c47ef11a812bbada5ad4e2e802feeafdede48cfda"
HASH = "d53f5c4112205b8182ef1d86cc074626dd4588f7a7f657edd52805efbad441bf"
KINDS = {
    "adequacy": Kind.NOUL,
    "extraction": Kind.CHOICE,
    "intent": Kind.CHOICE,
    "ordinal": Kind.SCORE,
    "policy": Kind.NOUL,
    "routing": Kind.CHOICE,
}


@pytest.fixture(scope="module")
def demo() -> LoadedDataset:
    fields = OmegaConf.to_container(OmegaConf.load(CONF))
    return load_dataset(Dataset.model_validate_json(dumps(fields)))


def pairs(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    groups: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        groups[str(task.group)].append(task)
    return groups


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from keys(part)
    elif isinstance(value, list):
        for part in value:
            yield from keys(part)


def test_the_shipped_file_is_the_pinned_one(demo: LoadedDataset) -> None:
    assert demo.files == (
        LoadedFile(name="demo.jsonl", url=None, sha256=SHA256, bytes=30293, tasks=48),
    )
    assert demo.dataset_hash == HASH


def test_every_family_has_eight_tasks_of_one_kind(demo: LoadedDataset) -> None:
    assert Counter(task.family for task in demo.tasks) == dict.fromkeys(KINDS, 8)
    assert {(task.family, task.kind) for task in demo.tasks} == set(KINDS.items())


def test_tasks_come_in_paraphrase_pairs(demo: LoadedDataset) -> None:
    groups = pairs(demo.tasks)
    assert len(groups) == 24
    for group, (first, second) in groups.items():
        assert (first.id, second.id) == (f"{group}-a", f"{group}-b")
        assert group.startswith(f"demo-{first.family}-")
        assert first.question == second.question
        assert first.labels == second.labels == first.question.options
        assert first.expected == second.expected
        assert first.state != second.state


def test_every_dozen_of_tasks_has_a_pair_of_each_family(demo: LoadedDataset) -> None:
    # A run with a limit should still see every family.
    for start in range(0, 48, 12):
        dozen = demo.tasks[start : start + 12]
        assert [task.family for task in dozen] == sorted([*KINDS, *KINDS])
        assert len(pairs(dozen)) == 6


def test_yes_and_no_are_right_equally_often(demo: LoadedDataset) -> None:
    for family in ("adequacy", "policy"):
        golds = Counter(task.gold for task in demo.tasks if task.family == family)
        assert golds == {"no": 4, "yes": 4}


def test_every_position_of_an_option_is_right_equally_often(demo: LoadedDataset) -> None:
    choices = [task for task in demo.tasks if task.kind is Kind.CHOICE]
    positions = Counter(task.labels.index(str(task.gold)) for task in choices)
    assert positions == {0: 6, 1: 6, 2: 6, 3: 6}


def test_the_first_label_in_the_alphabet_is_rarely_right(demo: LoadedDataset) -> None:
    # Ties go to the first label in the alphabet, so a model without an opinion picks it.
    for family in ("extraction", "intent", "routing"):
        of_family = [task for task in demo.tasks if task.family == family]
        firsts = [task for task in of_family if task.gold == min(task.labels)]
        assert len(firsts) <= 2


def test_options_and_levels_are_right_once_a_pair(demo: LoadedDataset) -> None:
    for family in ("extraction", "intent", "ordinal", "routing"):
        golds = Counter(task.gold for task in demo.tasks if task.family == family)
        assert sorted(golds.values()) == [2, 2, 2, 2]


def test_every_option_is_described(demo: LoadedDataset) -> None:
    for task in demo.tasks:
        criteria = task.question.criteria
        assert criteria
        described = criteria if isinstance(criteria, list) else list(criteria.values())
        assert all(isinstance(text, str) and len(text) >= 4 for text in described)


def test_states_are_texts_objects_and_lists_in_several_languages(demo: LoadedDataset) -> None:
    assert {type(task.state) for task in demo.tasks} == {str, dict, list}
    texts = dumps([task.state for task in demo.tasks])
    for sample in ("ß", "会", "é", "ś", "¿", "😡"):
        assert sample in texts


def test_no_state_gives_the_answer_away(demo: LoadedDataset) -> None:
    for task in demo.tasks:
        assert not GOLD_KEYS & set(keys(task.state))


def test_tasks_say_where_they_are_from(demo: LoadedDataset) -> None:
    for task in demo.tasks:
        assert task.split == "public"
        assert task.scorable
        assert task.provenance == {"source": "jevexp demo tasks", "licence": "MIT"}
