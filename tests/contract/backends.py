"""Every provider that the contract suite runs on; a new one needs one entry here.

An entry makes a provider that is not open yet, in a folder of its own, and keeps alive what the
provider needs. It is told which requests will be put to it, in order, because some providers only
repeat what they were told; all others ignore that.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from jevexp.backends import python_factory
from jevexp.backends.decisions import Decisions
from jevexp.backends.fake import Fake, answer_key
from jevexp.backends.llama_cpp import LlamaCpp
from jevexp.backends.openai.chat import OpenAIChat
from jevexp.backends.openai.logprobs import OpenAILogprobs
from jevexp.backends.protocol import Backend
from jevexp.backends.replay import Replay
from jevexp.backends.systemone import SystemOne
from jevexp.core.decision import Request
from jevexp.core.task import Task
from jevexp.settings import FakeBackend, PythonBackend
from tests.contract.questions import TASKS
from tests.support.bridge import judgevet_backend, need_bridge
from tests.support.decision_files import write_decision
from tests.support.llama import backend_settings, model_identity, open_server
from tests.support.openai import chat_settings, logprobs_settings
from tests.support.replays import ask, replay_settings, write_answers
from tests.support.scripted_decisions import scripted_decisions
from tests.support.scripted_llama import Answer, scripted_llama
from tests.support.scripted_openai import HOSTED, LLAMA, SGLANG, VLLM, Flavour, scripted_openai
from tests.support.systemone import (
    SPARROW,
    decisions_settings,
    respond,
    scripted_decision_service,
    scripted_systemone,
)
from tests.support.systemone import settings as systemone_settings
from tests.support.tiny_gguf import write_tiny_gguf

Factory = Callable[[Path, Sequence[Request]], AbstractContextManager[Backend]]


def _fake(mode: Literal["uniform", "noise", "script"], script: Path | None = None) -> Fake:
    settings = FakeBackend(
        kind="fake",
        name="fake",
        mode=mode,
        script=str(script) if script else None,
        accuracy=0.8,
        seed=0,
        latency_s=0.0,
    )
    return Fake(settings, answer_key(TASKS) if mode == "noise" else {})


@contextmanager
def fake_uniform(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """Every option equally likely."""
    del folder, requests
    yield _fake("uniform")


@contextmanager
def fake_noise(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """Told the right answers."""
    del folder, requests
    yield _fake("noise")


@contextmanager
def fake_script(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """Told what to answer; it decides nothing itself."""
    path = folder / "script.json"
    path.write_text(json.dumps([_scripted_answer(request) for request in requests]))
    yield _fake("script", path)


def _scripted_answer(request: Request) -> dict[str, Any]:
    options = request.question.options
    if not options:
        return {"error": "options_unknown"}
    return {"probs": dict.fromkeys(options, 1 / len(options))}


@contextmanager
def llama_cpp_scripted(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """The llama.cpp provider on a local server that answers like llama-server."""
    del folder, requests
    with scripted_llama() as server:
        yield LlamaCpp(backend_settings(base_url=server.url), model_identity())


@contextmanager
def llama_cpp_native_scripted(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """The llama.cpp provider on a local server that answers like one with a decision model."""
    del folder, requests
    with scripted_decisions() as server:
        settings = backend_settings(base_url=server.url)
        yield LlamaCpp(settings.model_copy(update={"isolation": "none"}), model_identity())


@contextmanager
def llama_cpp_native_tiny(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """The llama.cpp provider on a real server with a tiny random decision model."""
    del requests
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    gguf = write_decision(folder / "tiny.gguf", "openjev")
    yield LlamaCpp(backend_settings(gguf=str(gguf)), model_identity())


@contextmanager
def llama_cpp_tiny(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """The llama.cpp provider on a real server with a tiny random model."""
    del requests
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    gguf = write_tiny_gguf(folder / "tiny.gguf")
    yield LlamaCpp(backend_settings(gguf=str(gguf), slots=4), model_identity())


@contextmanager
def python_object(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """A person's own backend."""
    del folder, requests
    yield _own("tests.support.own_model:Own")


@contextmanager
def python_function(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """A person's own function."""
    del folder, requests
    yield _own("tests.support.own_model:function")


def _own(factory: str) -> Backend:
    options = {"top": 0.9}
    settings = PythonBackend(kind="python", name="python", factory=factory, options=options)
    return python_factory.make(settings, model_identity(), ())


@contextmanager
def replay_run(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """What the fake answered in an earlier run; it decides nothing itself."""
    tasks = [_task(str(number), request) for number, request in enumerate(requests)]
    earlier = Path(tempfile.mkdtemp(dir=folder)) / "run"
    ask(earlier, [task for task in tasks if task], _fake("uniform"), model="m-1")
    yield Replay(replay_settings(run=earlier))


def _task(name: str, request: Request) -> Task | None:
    """A task that asks this; None where it names no options to be its labels."""
    if not request.question.options:
        return None
    return Task(
        id=name,
        family="earlier",
        state=request.state,
        question=request.question,
        labels=request.question.options,
        expected=None,
        split="public",
    )


@contextmanager
def replay_answers(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """Answers from a file, and one to a question that nobody asks."""
    spare = Request.of(TASKS[0].model_copy(update={"state": "spare"}), "m-1")
    answers = [(request, _scripted_answer(request)) for request in (spare, *requests)]
    path = write_answers(folder / "answers.jsonl", answers)
    yield Replay(replay_settings(answers=path))


@contextmanager
def systemone_scripted(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """The System One provider on a local service that answers well."""
    del folder, requests
    with scripted_systemone() as service:
        yield SystemOne(systemone_settings(service.url), model_identity())


@contextmanager
def systemone_wrapped(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """The System One provider on a local service with a path and an envelope of its own."""
    del folder, requests
    with scripted_systemone() as service:
        service.answers["/ai/run/m"] = lambda body: Answer({"result": respond(body).body})
        settings = systemone_settings(service.url, path="/ai/run/m", envelope="/result")
        yield SystemOne(settings, model_identity())


@contextmanager
def decisions_scripted(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """The provider of OpenAI's wire on a local service that answers well."""
    del folder, requests
    with scripted_decision_service() as service:
        yield Decisions(decisions_settings(service.url), model_identity())


@contextmanager
def systemone_sparrow(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """The System One provider on a small real model, which it starts itself."""
    del folder, requests
    pytest.importorskip("sparrow_decider", reason="sparrow-decider is not installed")
    yield SystemOne(systemone_settings(command=SPARROW), model_identity())


@contextmanager
def openai_chat_scripted(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """Written probabilities from a local server that answers like a hosted one."""
    del folder, requests
    with scripted_openai(HOSTED) as server:
        yield OpenAIChat(chat_settings(base_url=server.url), model_identity())


def openai_logprobs_scripted(flavour: Flavour) -> Factory:
    """Next-token probabilities from a local server that answers like a kind of real ones."""

    @contextmanager
    def made(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
        del folder, requests
        with scripted_openai(flavour) as server:
            yield OpenAILogprobs(logprobs_settings(base_url=server.url), model_identity())

    return made


@contextmanager
def openai_logprobs_tiny(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """Next-token probabilities from llama.cpp's own OpenAI route, with a tiny random model."""
    del requests
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    server = open_server(write_tiny_gguf(folder / "tiny.gguf"), "m-1")
    url = server.start(folder)
    try:
        yield OpenAILogprobs(logprobs_settings(base_url=url), model_identity(alias="m-1"))
    finally:
        server.stop()


@contextmanager
def judgevet_http(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """The adapter of judgevet itself on a local service."""
    del folder, requests
    need_bridge()
    with scripted_systemone() as service:
        yield judgevet_backend(f"backend.base_url={service.url}", "backend.key_env=null")


@contextmanager
def judgevet_factory(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """The provider that judgevet ships for tests, named by what makes it."""
    del folder, requests
    need_bridge()
    yield judgevet_backend(
        "backend.provider=factory", "backend.factory=tests.support.bridge:fake_port"
    )


@contextmanager
def judgevet_typevet(folder: Path, requests: Sequence[Request]) -> Iterator[Backend]:
    """The offline session of typevet."""
    del folder, requests
    need_bridge()
    yield judgevet_backend("backend=typevet", "backend.typevet.backend=fake")


BACKENDS = [
    pytest.param(fake_uniform, id="fake, uniform"),
    pytest.param(fake_noise, id="fake, noise"),
    pytest.param(fake_script, id="fake, script"),
    pytest.param(python_object, id="python, object"),
    pytest.param(python_function, id="python, function"),
    pytest.param(replay_run, id="replay, run"),
    pytest.param(replay_answers, id="replay, answers"),
    pytest.param(llama_cpp_scripted, id="llama_cpp, scripted server"),
    pytest.param(llama_cpp_native_scripted, id="llama_cpp, scripted decision server"),
    pytest.param(systemone_scripted, id="systemone, scripted server"),
    pytest.param(systemone_wrapped, id="systemone, wrapped answers"),
    pytest.param(decisions_scripted, id="decisions, scripted server"),
    pytest.param(openai_chat_scripted, id="openai_chat, scripted server"),
    pytest.param(openai_logprobs_scripted(LLAMA), id="openai_logprobs, like llama.cpp"),
    pytest.param(openai_logprobs_scripted(VLLM), id="openai_logprobs, like vLLM"),
    pytest.param(openai_logprobs_scripted(SGLANG), id="openai_logprobs, like SGLang"),
    pytest.param(judgevet_http, id="judgevet, http"),
    pytest.param(judgevet_factory, id="judgevet, factory"),
    pytest.param(judgevet_typevet, id="judgevet, typevet"),
    # Real servers: one entry each, marked live.
    pytest.param(llama_cpp_tiny, id="llama_cpp, tiny model", marks=pytest.mark.live),
    pytest.param(llama_cpp_native_tiny, id="llama_cpp, tiny decision", marks=pytest.mark.live),
    pytest.param(systemone_sparrow, id="systemone, sparrow", marks=pytest.mark.live),
    pytest.param(openai_logprobs_tiny, id="openai_logprobs, tiny model", marks=pytest.mark.live),
]
