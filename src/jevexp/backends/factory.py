"""Which class stands behind a configured backend; each is imported only when it is used."""

from collections.abc import Iterable

from jevexp.backends.protocol import Backend
from jevexp.core.task import Task
from jevexp.settings import (
    AnyBackend,
    FakeBackend,
    JudgevetBackend,
    LlamaCppBackend,
    ModelIdentity,
    OpenAIChatBackend,
    OpenAILogprobsBackend,
    PythonBackend,
    ReplayBackend,
    SystemOneBackend,
)


def make_backend(  # noqa: PLR0911 - one a provider
    settings: AnyBackend, model: ModelIdentity, tasks: Iterable[Task]
) -> Backend:
    """The configured provider, not opened yet.

    Raises:
        InputError: a file or a package that the provider needs cannot be used.
    """
    match settings:
        case FakeBackend():
            from jevexp.backends.fake import Fake, answer_key

            # The only one that is told the answers, since making them up is what it is for.
            return Fake(settings, answer_key(tasks) if settings.mode == "noise" else {})
        case LlamaCppBackend():
            from jevexp.backends.llama_cpp import LlamaCpp

            return LlamaCpp(settings, model)
        case PythonBackend():
            from jevexp.backends.python_factory import make_python

            return make_python(settings)
        case ReplayBackend():
            from jevexp.backends.replay import Replay

            return Replay(settings)
        case SystemOneBackend():
            from jevexp.backends.systemone import SystemOne

            return SystemOne(settings)
        case JudgevetBackend():
            from jevexp.backends.judgevet import Judgevet

            return Judgevet(settings, model)
        case OpenAIChatBackend():
            from jevexp.backends.openai.chat import OpenAIChat

            return OpenAIChat(settings, model)
        case OpenAILogprobsBackend():
            from jevexp.backends.openai.logprobs import OpenAILogprobs

            return OpenAILogprobs(settings, model)
