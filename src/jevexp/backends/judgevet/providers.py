"""A provider as the settings name it, open until its context ends."""

import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from jevexp.backends.causes import key_advice
from jevexp.backends.connection import REASONS
from jevexp.backends.judgevet.exchange import RecordingTransport
from jevexp.backends.python_factory import call_safely, find_callable
from jevexp.errors import InputError
from jevexp.settings import JudgevetBackend
from jevexp.untrusted.secrets import Secrets

_ADVICE = "; it must work without arguments"
# judgevet's adapter insists on a key, also for servers that want none.
_NO_KEY = "none"
# What the names of a session's variables begin with.
_PREFIXES = {"llama_cpp": "TYPEVET_LLAMA__", "vllm": "TYPEVET_VLLM__"}


@dataclass(frozen=True, slots=True)
class Provider:
    """An open provider, whose `port` has judgevet's `system_one(state, questions, model)`.

    `model` is what it calls its model before it is asked, `transport` what its requests pass
    through. With `echoes_model` it reports the requested model, whoever answered.
    """

    port: Any
    model: str | None = None
    most_options: int | None = None
    transport: RecordingTransport | None = None
    echoes_model: bool = False


@contextmanager
def http_provider(settings: JudgevetBackend, alias: str, key: str | None) -> Iterator[Provider]:
    """The adapter of judgevet itself, told not to repeat a request."""
    import httpx2
    from judgevet import HTTPSystemOneAdapter, RetryPolicy

    url = settings.base_url or ""
    transport: Any = RecordingTransport(httpx2, url, settings.timeout_s)
    with HTTPSystemOneAdapter(
        api_key=key or _NO_KEY,
        base_url=url,
        default_model=alias,
        transport=transport,
        timeout_seconds=settings.timeout_s,
        retry=RetryPolicy(max_attempts=1),
    ) as port:
        yield Provider(port, transport=transport)


@contextmanager
def typevet_provider(settings: JudgevetBackend, alias: str, key: str | None) -> Iterator[Provider]:
    """A typevet session behind judgevet's interface; raises InputError where it does not open."""
    from typevet.adapters.inbound.backend_settings import open_judgment
    from typevet.adapters.inbound.judgevet import DEFAULT_MAX_CHOICE_OPTIONS, TypevetSystemOnePort
    from typevet.adapters.outbound.gemma import ChatMLThinkingFraming
    from typevet.domain.errors import BackendHttpError, GenerationError

    url, fake = settings.base_url or "", settings.typevet.backend == "fake"
    transport = None if fake else RecordingTransport(httpx, url, settings.timeout_s)
    framing = ChatMLThinkingFraming() if settings.typevet.framing else None
    variables = environment(settings, alias, key)
    with ExitStack() as stack:
        try:
            opening = open_judgment(variables, transport=transport, framing=framing)
            session = stack.enter_context(opening)
        except BackendHttpError as error:
            todo = ""
            if error.status_code in (401, 403):
                todo = f"; {key_advice('backend.key_env', settings.key_env)}"
            reason = f"HTTP {error.status_code}{todo}"
            raise InputError(f"backend.base_url: {url} is not usable: {reason}") from error
        except GenerationError as error:
            code = transport.exchanges[-1].failure if transport and transport.exchanges else None
            reason = REASONS.get(code or "", "it does not answer as typevet expects")
            raise InputError(f"backend.base_url: {url} is not usable: {reason}") from error
        except ValueError as error:
            # typevet's own words, in which a server's may be.
            words = Secrets([key]).without(" ".join(str(error).split()))
            raise InputError(f"backend.typevet: {words}") from error
        yield Provider(
            TypevetSystemOnePort(session.port),
            model=session.model if fake else None,
            most_options=DEFAULT_MAX_CHOICE_OPTIONS,
            transport=transport,
            echoes_model=not fake,
        )


@contextmanager
def factory_provider(
    settings: JudgevetBackend, _alias: str, _key: str | None
) -> Iterator[Provider]:
    """The provider that the callable at `factory` makes. This runs code that the settings name.

    Raises InputError where there is no such callable, it fails, or it makes no judgevet provider.
    """
    path = settings.factory or ""
    port = call_safely(path, find_callable(path), _ADVICE)
    with ExitStack() as stack:
        if hasattr(port, "__enter__") and hasattr(port, "__exit__"):
            scope = port
            port = call_safely(path, lambda: stack.enter_context(scope), _ADVICE)
        system_one = getattr(port, "system_one", None)
        if not callable(system_one) or inspect.iscoroutinefunction(system_one):
            raise InputError(
                f"backend.factory: {path} made a {type(port).__name__}, which has no synchronous "
                "system_one(state, questions, model); return a judgevet SystemOnePort"
            )
        yield Provider(port)


PROVIDERS = {"http": http_provider, "typevet": typevet_provider, "factory": factory_provider}


def environment(settings: JudgevetBackend, alias: str, key: str | None = None) -> dict[str, str]:
    """The variables that a session is told its settings in, the server's key among them."""
    session = settings.typevet
    variables: dict[str, str] = {"TYPEVET_BACKEND": session.backend}
    if session.backend == "fake":
        if session.distributions is not None:
            path = Path(session.distributions).expanduser()
            variables["TYPEVET_FAKE__DISTRIBUTIONS"] = str(path)
        return variables
    model = "MODEL"
    if session.backend == "llama_cpp":
        # Which of the two typevet reads depends on who composes the prompt.
        model = "DEFAULT_MODEL" if session.framing else "MULTIMODAL_MODEL"
    prefix = _PREFIXES[session.backend]
    variables[f"{prefix}BASE_URL"] = settings.base_url or ""
    variables[f"{prefix}{model}"] = alias
    variables[f"{prefix}TIMEOUT"] = str(settings.timeout_s)
    return variables if key is None else {**variables, f"{prefix}API_KEY": key}
