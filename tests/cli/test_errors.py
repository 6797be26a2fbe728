"""A person's mistake is told in one line, exits 2 and leaves nothing behind."""

from pathlib import Path

import pytest

from tests.support.cli import jevexp

GOOD = (
    '{"id": "t", "family": "f", "state": "s", "question": {"type": "noul", "instructions": "?"}, '
    '"labels": ["no", "yes"], "expected": "yes", "split": "public"}\n'
)
LOCAL = ("dataset=local", "dataset.path=tasks.jsonl")


@pytest.fixture(autouse=True)
def tasks(workplace: Path) -> Path:
    path = workplace / "tasks.jsonl"
    path.write_text(GOOD)
    return path


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["backend=nope"], "backend=nope: no such option; choose one of: cloudflare, "),
        (
            ["backend=llama_cp"],
            "backend=llama_cp: no such option; did you mean llama_cpp? choose one of: cloudflare, ",
        ),
        (
            ["dataset=local"],
            "dataset.path: missing; give dataset.path=FILE, a JSON Lines file of tasks",
        ),
        (
            [*LOCAL, "caps.limit=0"],
            "caps.limit: input should be greater than or equal to 1, found 0",
        ),
        ([*LOCAL, "caps.cap_usd=nan"], "caps.cap_usd: expected a finite number, found nan"),
        ([*LOCAL, "caps.cap_usd=-.inf"], "caps.cap_usd: input should be a valid number"),
        (
            [*LOCAL, "caps.cap_usd=-1"],
            "caps.cap_usd: input should be greater than or equal to 0, found -1",
        ),
        ([*LOCAL, "caps.limt=3"], "caps.limt: no such field; did you mean caps.limit?"),
        (["bakend=fake"], "bakend: no such field; did you mean backend?"),
        (
            [*LOCAL, "+pricing.x=1"],
            "pricing.x: no such field; pricing has basis, input_per_m, name, output_per_m, source",
        ),
        (["model=unclaimed"], "model.alias: missing; set model.alias=VALUE"),
        (
            [*LOCAL, "backend.seed=1,2"],
            "backend.seed=1,2: several values; sweep over them with -m, or write a list as [a,b]",
        ),
        (["experiment=nope"], "experiment=nope: no such option; choose one of: "),
        (
            [*LOCAL, "caps.reserve_usd=0"],
            "caps.reason: reserving nothing needs a reason, which the manifest keeps",
        ),
        (["--config-dir", "nowhere"], "--config-dir nowhere: no such folder"),
        (
            [*LOCAL, "caps.ledger=tasks.jsonl"],
            "caps.ledger: {here}/tasks.jsonl:1: not a ledger row",
        ),
        ([*LOCAL, "hydra.run.dir=."], ".: exists already; every run needs a fresh directory"),
        (["x=[1"], "x=[1: not an override: "),
        (["dataset=[[a]]"], "cannot be composed: "),
        ([f"experiment={'x' * 10_000}"], "cannot be composed: File name too long"),
        (["-m", *LOCAL, "caps.limit=1,0"], "caps.limit: input should be greater than or equal"),
        (["--cfg", "job", "caps.limt=3"], "caps.limt: no such field; did you mean caps.limit?"),
        (["--cfg", "job", "-m", *LOCAL], "--multirun and --cfg: give one of them; jevexp plan -m "),
        (["--run", "-m", *LOCAL], "--run and --multirun: give one of them; "),
        (["--info", "all", "--cfg", "job"], "--cfg and --info: give one of them; "),
        (["-m", "--shell-completion", "install=bash"], "--multirun and --shell-completion: give "),
        (["--cfg", "hydra", "--resolve"], "--resolve: --cfg hydra cannot be resolved alone; "),
    ],
)
def test_a_mistake_is_one_line_with_exit_status_2(
    arguments: list[str], line: str, workplace: Path
) -> None:
    done = jevexp(*arguments, cwd=workplace)

    assert done.status == 2
    assert done.err.startswith(f"error: {line.replace('{here}', str(workplace))}")
    assert done.err.count("\n") == 1
    assert done.out == ""
    assert [path.name for path in workplace.iterdir()] == ["tasks.jsonl"]


def test_a_bad_line_in_a_task_file_is_named(tasks: Path, workplace: Path) -> None:
    tasks.write_text(GOOD + GOOD.replace('"t"', '"u"').replace('"public"', '"secret"'))

    done = jevexp(*LOCAL, cwd=workplace)

    assert done.status == 2
    assert done.err.startswith("error: tasks.jsonl:2: task 'u': split: ")
    assert [path.name for path in workplace.iterdir()] == ["tasks.jsonl"]


def test_outputs_inside_the_installed_package_are_refused(workplace: Path) -> None:
    import jevexp as package

    inside = Path(package.__file__).parent / "outputs"
    done = jevexp(*LOCAL, f"outputs={inside}", cwd=workplace)

    assert done.status == 2
    assert "lies inside the installed packages; choose another" in done.err
    assert not inside.exists()


def test_a_provider_that_cannot_be_used_leaves_no_directory(workplace: Path) -> None:
    done = jevexp(
        *LOCAL,
        "backend=llama_cpp",
        "backend.server.base_url=http://127.0.0.1:9",
        cwd=workplace,
    )

    assert done.status == 2
    assert "http://127.0.0.1:9" in done.err
    assert done.err.count("\n") == 1
    assert [path.name for path in workplace.iterdir()] == ["tasks.jsonl"]


def test_an_outputs_folder_that_cannot_be_made_is_named(workplace: Path) -> None:
    (workplace / "file").write_text("")

    done = jevexp(*LOCAL, "outputs=file", cwd=workplace)

    assert done.status == 2
    assert done.err.startswith("error: file/")
    assert done.err.endswith(": cannot be made: is no folder\n")
