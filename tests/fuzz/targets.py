"""What is fed hostile input, each target with the errors that it may end with."""

import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import httpx
import yaml  # type: ignore[import-untyped]
from hydra._internal.utils import get_args_parser
from omegaconf import OmegaConf

from jevexp.backends.llama_cpp import LlamaCpp
from jevexp.backends.openai.chat import OpenAIChat
from jevexp.backends.openai.logprobs import OpenAILogprobs
from jevexp.backends.protocol import Backend
from jevexp.backends.replay import read_answers, read_run
from jevexp.backends.systemone import SystemOne
from jevexp.cli.compose import compose_command
from jevexp.cli.main import main
from jevexp.core.decision import Decision, Request
from jevexp.core.json import dumps, loads, representable
from jevexp.core.task import Task
from jevexp.datasets import dataset_hash, load_tasks
from jevexp.errors import InputError
from jevexp.harness.scoring import score
from jevexp.identity import model_config, observe
from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import LedgerError
from jevexp.store import RunDirectory
from jevexp.tracking import NO_REPORT
from jevexp.tracking.mlflow import content
from jevexp.untrusted.console import is_printable
from tests.fuzz.mutations import NASTY, spoiled_bytes, spoiled_json, text, value
from tests.support import scripted_openai, systemone, tasks
from tests.support.cli import jevexp, only_run
from tests.support.llama import backend_settings, model_identity
from tests.support.openai import chat_settings, logprobs_settings
from tests.support.runs import tracking
from tests.support.scripted_llama import Answer, ScriptedLlama, scripted_llama
from tests.weights import gguf_bytes

Case = Callable[[Random], None]
KINDS = ("noul", "choice", "score")


@dataclass(frozen=True)
class Target:
    """A name, how often it is tried of 100,000 times, and what makes it ready in a folder."""

    name: str
    share: int
    ready: Callable[[Path], AbstractContextManager[Case]]


@contextmanager
def task_files(place: Path) -> Iterator[Case]:
    path = place / "tasks.jsonl"

    def case(random: Random) -> None:
        kinds = random.choices(KINDS, k=random.randint(1, 3))
        lines = [spoiled_json(random, tasks.fields(kind, id=kind)) for kind in kinds]
        path.write_bytes(random.choice((b"\n", b"\r\n", b"\n\n")).join(lines))
        with one_line():
            found = load_tasks(path, strict=random.random() < 0.5)
            assert len(dataset_hash(found)) == 64
            for task in found:
                assert dumps(Request.of(task, "m").wire()).encode()

    yield case


@contextmanager
def answers(
    place: Path,
    server: Callable[[], AbstractContextManager[ScriptedLlama]],
    make: Callable[[str], Any],
) -> Iterator[Case]:
    """A provider whose server spoils one of the answers that it is asked for, from opening on."""
    handlers: list[Callable[[httpx.Request], httpx.Response]] = []
    client = httpx.Client

    def in_process(**named: Any) -> httpx.Client:
        made = httpx.MockTransport(handlers[-1])
        made._pool = SimpleNamespace(_network_backend=None)  # type: ignore[attr-defined]
        return client(**named | {"transport": made})

    with server() as script:
        questions = [tasks.task(kind) for kind in KINDS]

        def case(random: Random) -> None:
            number = random.randrange(16)
            asked = iter(range(1000))

            def handle(request: httpx.Request) -> httpx.Response:
                body = json.loads(request.content) if request.content else None
                answer = answered(script, request.url.path, body)
                if next(asked) < number:
                    return reply(answer.status, json.dumps(answer.body).encode())
                status = random.choice((200, 200, 200, 200, 204, 400, 422, 429, 500))
                return reply(status, spoiled_json(random, answer.body))

            handlers[:] = [handle]
            backend: Backend = make(script.url)
            with one_line():
                backend.open(place)
                for task in questions:
                    check_decision(task, backend.decide(Request.of(task, "m")))
            assert loads(dumps(backend.describe())) == backend.describe()
            backend.close()

        httpx.Client = in_process  # type: ignore[assignment, misc]
        try:
            yield case
        finally:
            httpx.Client = client  # type: ignore[misc]


def check_decision(task: Task, decision: Decision) -> None:
    """Whether a decision can be scored, kept and read again."""
    assert isinstance(decision, Decision)
    verdict = score(task, decision)
    assert not (verdict.valid and not decision.ok)
    kept = representable([decision.request, decision.response, decision.runtime])
    assert loads(dumps(kept).encode()) == kept


def answered(script: ScriptedLlama, path: str, body: Any) -> Answer:
    """What the server says; it fails, as real ones do, where its own spoiled words come back."""
    try:
        return script.answer(path, body)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return Answer({"error": {"message": "internal"}}, status=500)


def reply(status: int, body: bytes) -> httpx.Response:
    """A response whose body comes as from a connection."""
    return httpx.Response(status, stream=httpx.ByteStream(body))


def system_one(place: Path) -> AbstractContextManager[Case]:
    return answers(
        place,
        systemone.scripted_systemone,
        lambda url: SystemOne(systemone.settings(url), model_identity()),
    )


def llama_cpp(place: Path) -> AbstractContextManager[Case]:
    return answers(
        place,
        scripted_llama,
        lambda url: LlamaCpp(backend_settings(base_url=url), model_identity()),
    )


def openai_chat(place: Path) -> AbstractContextManager[Case]:
    return answers(
        place,
        lambda: scripted_openai.scripted_openai(scripted_openai.HOSTED),
        lambda url: OpenAIChat(chat_settings(base_url=url), model_identity()),
    )


def openai_logprobs(place: Path) -> AbstractContextManager[Case]:
    return answers(
        place,
        lambda: scripted_openai.scripted_openai(scripted_openai.VLLM),
        lambda url: OpenAILogprobs(logprobs_settings(base_url=url), model_identity()),
    )


@contextmanager
def answer_files(place: Path) -> Iterator[Case]:
    path = place / "answers.jsonl"
    good = {
        "state": "s",
        "question": {"type": "noul", "instructions": "?"},
        "probs": {"no": 0.25, "yes": 0.75},
        "usage": {"input_tokens": 3},
    }

    def case(random: Random) -> None:
        lines = [spoiled_json(random, good) for _ in range(random.randint(1, 3))]
        path.write_bytes(b"\n".join(lines))
        with one_line():
            source = read_answers(path)
            assert loads(dumps(source.description)) == source.description

    yield case


@contextmanager
def ledgers(place: Path) -> Iterator[Case]:
    path = place / "ledger.jsonl"
    rows = [
        {"event": "cap", "cap_usd": 1.0, "ts": 1.0},
        {"event": "reserve", "reservation_id": "a", "reserved_usd": 0.1, "ts": 1.0, "meta": {}},
        {"event": "settle", "reservation_id": "a", "charged_usd": 0.05, "ts": 1.0, "meta": {}},
        {"event": "reserve", "reservation_id": "b", "reserved_usd": 0.1, "ts": 1.0, "meta": {}},
    ]

    def case(random: Random) -> None:
        lines = [json.dumps(row).encode() for row in rows[: random.randint(0, 4)]]
        for index in range(len(lines)):
            if random.random() < 0.5:
                lines[index] = spoiled_json(random, rows[index])
        torn = random.choice((b"\n", b""))
        path.write_bytes(b"\n".join(lines) + torn)
        try:
            with FileLedger(path, 1.0, read_only=True) as ledger:
                assert ledger.charged_usd >= 0
            with FileLedger(path, 1.0) as ledger:
                before = ledger.charged_usd
                one = ledger.reserve(0.125, {"task_id": "t"})
                ledger.settle(one, 0.0625, {})
                assert before <= ledger.charged_usd <= ledger.cap_usd + 1e-9
        except LedgerError as error:
            check_line(error)

    yield case


@contextmanager
def weights(place: Path) -> Iterator[Case]:
    os.environ["JEVEXP_CACHE"] = str(place / "cache")
    good = gguf_bytes.quantized(place).read_bytes()
    path = place / "model.gguf"

    def case(random: Random) -> None:
        name = random.choice(NASTY).replace("\ud800", "?")
        with_name = good.replace(
            gguf_bytes.text("A Model"), gguf_bytes.text(name) if random.random() < 0.5 else b""
        )
        spoil = random.random() < 0.8
        path.write_bytes(spoiled_bytes(random, with_name) if spoil else with_name)
        with one_line():
            seen = observe({}, weights=path)
            text = model_config(seen, "fuzz")
            plain = yaml.safe_load(text)
            assert OmegaConf.to_container(OmegaConf.create(text), resolve=True) == plain

    yield case


FIELDS = (
    "model.alias",
    "model.name",
    "+model.x",
    "dataset",
    "dataset.name",
    "dataset.path",
    "backend",
    "backend.seed",
    "backend.script",
    "caps.cap_usd",
    "caps.limit",
    "caps.ledger",
    "outputs",
    "harness.path",
    "tracking.uri",
    "tracking.experiment",
    "experiment",
    "hydra.run.dir",
    "hydra.job.name",
    "+hydra.callbacks.x._target_",
    "+_target_",
    "~model",
    "model.weights",
)


@contextmanager
def overrides(place: Path) -> Iterator[Case]:
    os.chdir(place)
    compose_command(get_args_parser().parse_args(["dataset=demo"]))

    def case(random: Random) -> None:
        made = (
            lambda: text(random),
            lambda: json.dumps(value(random)),
            lambda: "[" * random.randint(1, 2000),
        )
        given = [
            f"{random.choice(FIELDS)}={random.choice(made)()}" for _ in range(random.randint(1, 2))
        ]
        with one_line():
            found = compose_command(get_args_parser().parse_args(given))
            for settings in found.settings:
                assert settings.config_hash
                assert not {"/", "\0"} & set(settings.dataset.name + settings.model.name)

    yield case


FILES = (
    "manifest.json",
    "results.jsonl",
    "summary.json",
    "ledger.jsonl",
    "checksums.sha256",
    "run.log",
)
VERBS = ("list", "summarize", "verify", "receipt", "compare", "export", "replay")


@contextmanager
def run_directories(place: Path) -> Iterator[Case]:
    fast = ("dataset=demo", "tracking=none", "backend=fake", "backend.mode=noise", "caps.limit=8")
    done = jevexp(*fast, cwd=place)
    assert done.status == 0, done.err
    day = only_run(place / "outputs").parent
    good = Path(shutil.copytree(only_run(place / "outputs"), place / "good"))
    run = only_run(place / "outputs")
    raw = [str(path.relative_to(good)) for path in sorted(good.glob("raw/*.json"))[:2]]
    contents = {name: (good / name).read_bytes() for name in (*FILES, *raw)}
    planned = load_tasks_of(run)
    for verb in VERBS:
        read(verb, run, good, day, planned)

    def case(random: Random) -> None:
        name = random.choice(sorted(contents))
        (run / name).write_bytes(_spoiled_file(random, contents[name]))
        try:
            read(random.choice(VERBS), run, good, day, planned)
        finally:
            (run / name).write_bytes(contents[name])

    yield case


def load_tasks_of(run: Path) -> Any:
    from jevexp.datasets import planned_tasks_or_none

    return planned_tasks_or_none(RunDirectory(run).read_manifest())


def read(verb: str, run: Path, good: Path, day: Path, planned: Any) -> None:
    """Read a run in one of the ways there are; what is printed has to be printable."""
    if verb == "export":
        try:
            content.read(RunDirectory(run), planned, tracking(), NO_REPORT)
        except (InputError, ValueError, OSError):
            # What the tracker turns into its one line.
            return
        return
    if verb == "replay":
        with one_line():
            read_run(run)
        return
    commands = {
        "list": ["list", "--outputs", str(day.parent)],
        "compare": ["compare", "--draws", "100", str(good), str(run)],
    }
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        status = main(commands.get(verb, [verb, str(run)]))
    assert status in {0, 1, 2, 3}
    assert all(is_printable(line) for line in output.getvalue().split("\n"))


def _spoiled_file(random: Random, good: bytes) -> bytes:
    lines = good.split(b"\n")
    if not good.startswith(b"{"):
        return spoiled_bytes(random, good)
    try:
        return spoiled_json(random, json.loads(good))
    except json.JSONDecodeError:
        at = random.randrange(len(lines) - 1)
        lines[at] = spoiled_json(random, json.loads(lines[at]))
        return b"\n".join(lines)


@contextmanager
def one_line() -> Iterator[None]:
    """A refusal is an `InputError` of one line."""
    try:
        yield
    except InputError as error:
        check_line(error)


def check_line(error: Exception) -> None:
    """Whether an error's message is one line."""
    assert "\n" not in str(error)


TARGETS = (
    Target("task files", 40_000, task_files),
    Target("answers: systemone", 4_000, system_one),
    Target("answers: llama_cpp", 4_000, llama_cpp),
    Target("answers: openai_chat", 4_000, openai_chat),
    Target("answers: openai_logprobs", 4_000, openai_logprobs),
    Target("answer files", 20_000, answer_files),
    Target("ledgers", 14_000, ledgers),
    Target("weight files", 10_000, weights),
    Target("run directories", 1_500, run_directories),
    Target("overrides", 500, overrides),
)
