"""Which class stands behind a configured backend."""

from collections.abc import Iterable

from jevexp.backends.protocol import Backend
from jevexp.domain.task import Task
from jevexp.settings import FakeBackend, LlamaCppBackend, ModelIdentity


def make_backend(
    settings: FakeBackend | LlamaCppBackend, model: ModelIdentity, tasks: Iterable[Task]
) -> Backend:
    """The configured provider, not opened yet.

    Raises:
        InputError: a file that the provider needs cannot be used.
    """
    if isinstance(settings, LlamaCppBackend):
        from jevexp.backends.llama_cpp import LlamaCpp

        return LlamaCpp(settings, model)
    from jevexp.backends.fake import Fake, answer_key

    # The only provider that is told the answers, since making them up is what it is for.
    return Fake(settings, answer_key(tasks) if settings.mode == "noise" else {})
