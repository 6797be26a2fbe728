"""Of Hydra's own node a few fields may be set; the rest is refused before anything happens."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from jevexp.cli.main import main

FAST = ("dataset=demo", "caps=smoke", "tracking=none")
TRAP = "import pathlib\npathlib.Path('mark').touch()\n"

# A field of Hydra's node, a value for it, and how the refusal begins.
REFUSED = [
    ("job.env_set.JEVEXP_X", "1", "hydra.job.env_set: would change the environment"),
    ("job.env_copy", "[HOME]", "hydra.job.env_"),
    ("job.chdir", "true", "hydra.job.chdir: cannot be set"),
    ("output_subdir", "../../there", "hydra.output_subdir: cannot be set"),
    ("output_subdir", "${oc.env:PWD}", "hydra.output_subdir: cannot be set"),
    ("help.template", "x", "hydra.help.template: cannot be set"),
    ("callbacks.x._target_", "trap.hook", "hydra.callbacks: would run code"),
    ("job_logging.handlers.x.class", "trap.Hook", "hydra.job_logging: jevexp keeps a log"),
    ("hydra_logging.handlers.x.class", "trap.Hook", "hydra.hydra_logging: jevexp keeps a log"),
    ("launcher._target_", "trap.hook", "hydra.launcher._target_: trap.hook is none of"),
    ("launcher._target_", "${oc.env:TARGET}", "hydra.launcher._target_: trap.hook is none of"),
    ("sweeper._target_", "trap.hook", "hydra.sweeper._target_: trap.hook is none of"),
    ("verbose", "3", "hydra.verbose: write true, false"),
    ("run.dir", "../there", "hydra.run.dir: ../there leads upwards"),
    ("run.dir", "a/../../there", "hydra.run.dir: a/../../there leads upwards"),
    ("run.dir", "${oc.env:UPWARDS}/there", "hydra.run.dir: ../there leads upwards"),
    ("run.dir", "${outputs}/../../there", "hydra.run.dir: outputs/../../there leads"),
    ("run.dir", "${hydra:runtime.cwd}/../there", "ValueError raised while resolving"),
    ("sweep.dir", "../there", "hydra.sweep.dir: ../there leads upwards"),
    ("sweep.subdir", "../there", "hydra.sweep.subdir: ../there leads upwards"),
    ("sweep.subdir", "${oc.env:UPWARDS}", "hydra.sweep.subdir: .. leads upwards"),
    ("sweep.subdir", "${hydra.job.num}/../../x", "hydra.sweep.subdir: 0/../../x leads"),
    ("sweep.subdir", "${oc.env:PWD}", "hydra.sweep.subdir: "),
    ("sweep.subdir", ".", "hydra.sweep.subdir: '.' is not the name of a folder"),
    ("sweep.subdir", "a/b", "hydra.sweep.subdir: 'a/b' is not the name of a folder"),
]


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of options for all tests: what is composed once of each folder is kept."""
    return tmp_path_factory.mktemp("options")


@pytest.fixture(autouse=True)
def nothing_happened(workplace: Path, options: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that must not be imported, and variables that interpolations read."""
    (workplace / "trap.py").write_text(TRAP)
    shutil.rmtree(options)
    (options / "experiment").mkdir(parents=True)
    (workplace / "mine").symlink_to(options)
    monkeypatch.syspath_prepend(str(workplace))
    monkeypatch.setenv("UPWARDS", "..")
    monkeypatch.setenv("TARGET", "trap.hook")
    monkeypatch.setenv("PWD", str(workplace))


def _refused(arguments: list[str], begins: str, capsys: pytest.CaptureFixture[str]) -> None:
    environment = dict(os.environ)
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {begins}")
    assert err.count("\n") == 1
    assert dict(os.environ) == environment
    assert "trap" not in sys.modules
    assert sorted(one.name for one in Path().iterdir()) == ["mine", "trap.py"]


def _experiment(text: str, name: str = "bad") -> list[str]:
    Path(f"mine/experiment/{name}.yaml").write_text(f"# @package _global_\n{text}\n")
    return ["--config-dir", "mine", f"experiment={name}", *FAST]


@pytest.mark.parametrize("prefix", ["", "++"])
@pytest.mark.parametrize(("field", "value", "begins"), REFUSED)
def test_a_command_line_sets_few_fields(
    field: str, value: str, begins: str, prefix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _refused([*FAST, f"{prefix}hydra.{field}={value}"], begins, capsys)


@pytest.mark.parametrize("sweep", [[], ["-m", "backend.seed=1,2"]], ids=["run", "sweep"])
@pytest.mark.parametrize(("field", "value", "begins"), REFUSED)
def test_a_configuration_file_sets_no_more(
    field: str, value: str, begins: str, sweep: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text, indent = "hydra:\n", 2
    *parents, name = field.split(".")
    for parent in parents:
        text += f"{' ' * indent}{parent}:\n"
        indent += 2
    value = value if value.startswith("[") else f"'{value}'" if "$" in value else value
    _refused([*_experiment(f"{text}{' ' * indent}{name}: {value}"), *sweep], begins, capsys)


def test_a_configuration_file_gives_no_absolute_directory(
    capsys: pytest.CaptureFixture[str], workplace: Path
) -> None:
    there = workplace.parent / "there"
    for field in ("run", "sweep"):
        arguments = _experiment(f"hydra:\n  {field}:\n    dir: {there}")
        _refused(arguments, f"hydra.{field}.dir: {there} in a configuration file is", capsys)
    assert not there.exists()


def test_ones_own_command_line_does(workplace: Path) -> None:
    there = workplace.parent / f"{workplace.name}-there"
    assert main([*FAST, f"hydra.run.dir={there}", "hydra.verbose=true", "hydra.job.name=x"]) == 0
    assert (there / "manifest.json").exists()


def test_a_configuration_file_may_name_a_folder_of_the_sweep() -> None:
    arguments = _experiment(
        "hydra:\n  sweep:\n    dir: swept\n    subdir: seed-${backend.seed}-${hydra.job.num}\n"
        "  job:\n    name: mine\n  sweeper:\n    params:\n      backend.seed: 1,2"
    )
    assert main(["-m", *arguments]) == 0
    found = sorted(str(path.parent) for path in Path("swept").glob("*/manifest.json"))
    assert found == ["swept/seed-1-0", "swept/seed-2-1"]


@pytest.mark.parametrize(
    ("override", "begins"),
    [
        ("hydra/job_logging=nope", "hydra.job_logging: jevexp keeps a log of its own"),
        ("hydra/hydra_logging=default", "hydra.hydra_logging: jevexp keeps a log of its own"),
        ("hydra/callbacks=nope", "hydra.callbacks: would run code"),
        ("hydra/env=nope", "hydra/env: cannot be set"),
        ("hydra/launcher=nope", "hydra/launcher=nope: no such option"),
        ("++hydra={job: {env_set: {A: b}}}", "hydra.job.env_set: would change"),
        ("++hydra.job={env_set: {A: b}}", "hydra.job: set its fields one by one"),
        ("~hydra.job", "hydra.job: set its fields one by one"),
        ("~hydra.run.dir", "hydra.run.dir: cannot be removed"),
        ("hydra.launcher=${backend}", "hydra.launcher"),
        ("hydra.searchpath=[pkg://trap]", "hydra.searchpath: would take configuration"),
        ("hydra.searchpath=[file:///tmp]", "hydra.searchpath: would take configuration"),
        ("hydra.searchpath=['${oc.env:TARGET}']", "hydra.searchpath: would take configuration"),
        ("hydra.overrides.hydra=[x]", "hydra.overrides.hydra: cannot be set"),
        ("hydra.runtime.cwd=/tmp", "hydra.runtime.cwd: cannot be set"),
    ],
)
def test_no_way_around_on_a_command_line(
    override: str, begins: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in ([], ["--cfg", "job"], ["-m", "backend.seed=1,2"]):
        _refused([*FAST, override, *more], begins, capsys)


@pytest.mark.parametrize(
    ("arguments", "begins"),
    [
        (["hydra.sweep.dir=a,b"], "hydra.sweep.dir: one value for the whole sweep"),
        (["hydra.job.env_set.A=1,2"], "hydra.job.env_set: would change"),
        (["hydra/launcher=cores,basic"], "hydra/launcher: one value for the whole sweep"),
    ],
)
def test_nothing_of_hydras_node_is_swept(
    arguments: list[str], begins: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _refused(["-m", *FAST, *arguments], begins, capsys)


@pytest.mark.parametrize(
    "key", ["hydra.searchpath", "hydra.job.env_set.A", "hydra/job_logging", "hydra.sweep.dir"]
)
def test_a_sweepers_parameters_do_not_reach_it(
    key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = _experiment(f"hydra:\n  sweeper:\n    params:\n      {key}: '[pkg://trap]'")
    _refused(["-m", *arguments], f"hydra.sweeper.params.{key}: Hydra's own node", capsys)


def test_overrides_in_a_file_are_not_taken_over_by_a_sweep(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "hydra:\n  overrides:\n    hydra: ['hydra.searchpath=[pkg://trap]']"
    for mode in ([], ["-m", "backend.seed=1,2"]):
        _refused([*mode, *_experiment(text)], "hydra.overrides: belong on the command", capsys)


@pytest.mark.parametrize(
    ("flag", "begins"),
    [
        ("--config-path", "--config-path: "),
        ("--config-name", "--config-name: "),
        ("--experimental-rerun", "--experimental-rerun: "),
    ],
)
def test_hydras_flags_lead_past_no_check(
    flag: str, begins: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in (FAST, ["--help"], ["resume=there"], ["--shell-completion", "install=bash"]):
        _refused([flag, "mine", *more], begins, capsys)
    for verb in ("plan", "check"):
        _refused([verb, flag, "mine", *FAST], begins, capsys)


def test_folders_of_launchers_lie_in_the_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
    arguments = ["-m", *_experiment("hydra:\n  launcher:\n    submitit_folder: /there")]
    begins = "hydra.launcher.submitit_folder: /there in a configuration file is absolute"
    _refused([*arguments, "hydra/launcher=jobs"], begins, capsys)
    _refused(
        ["-m", *FAST, "hydra/launcher=jobs", "hydra.launcher.submitit_folder=../there"],
        "hydra.launcher.submitit_folder: ../there leads upwards",
        capsys,
    )


def test_a_file_of_aliases_is_refused_before_it_is_composed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Each line is ten times the one before: at the end more than any memory holds.
    lines = [
        "a0: &a0 x",
        *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)),
    ]
    given = _experiment("\n".join(lines))
    _refused(given, f"{Path('mine/experiment/bad.yaml').resolve()}: has 110 YAML aliases", capsys)
    _refused(
        ["--cfg", "job", *given], f"{Path('mine').resolve()}/experiment/bad.yaml: has 110", capsys
    )


def test_a_few_aliases_are_no_bomb(capsys: pytest.CaptureFixture[str]) -> None:
    text = "caps:\n  limit: &limit 2\nbackend:\n  seed: *limit"
    assert main(["--cfg", "job", *_experiment(text)]) == 0
    assert "seed: 2" in capsys.readouterr().out


def test_a_file_without_an_end_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    given = _experiment(f"x: '{'y' * (1 << 20)}'")
    _refused(
        given,
        f"{Path('mine/experiment/bad.yaml').resolve()}: a configuration file is longer",
        capsys,
    )
