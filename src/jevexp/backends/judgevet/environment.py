"""The `TYPEVET_*` variables of a typevet session, from our settings and nothing else."""

from pathlib import Path

from jevexp.settings import JudgevetBackend

_PREFIXES = {"llama_cpp": "TYPEVET_LLAMA__", "vllm": "TYPEVET_VLLM__"}


def environment(settings: JudgevetBackend, alias: str) -> dict[str, str]:
    """All variables except the key, which `with_key` adds."""
    session = settings.typevet
    variables: dict[str, str] = {"TYPEVET_BACKEND": session.backend}
    if session.backend == "fake":
        if session.distributions is not None:
            path = Path(session.distributions).expanduser()
            variables["TYPEVET_FAKE__DISTRIBUTIONS"] = str(path)
        return variables
    prefix = _PREFIXES[session.backend]
    return variables | {
        f"{prefix}BASE_URL": settings.base_url or "",
        f"{prefix}{_model_variable(settings)}": alias,
        f"{prefix}TIMEOUT": str(settings.timeout_s),
    }


def with_key(variables: dict[str, str], key: str | None) -> dict[str, str]:
    """The variables with the server's key among them; unchanged where there is none."""
    prefix = _PREFIXES.get(variables["TYPEVET_BACKEND"])
    return variables if key is None or prefix is None else {**variables, f"{prefix}API_KEY": key}


def _model_variable(settings: JudgevetBackend) -> str:
    if settings.typevet.backend == "vllm":
        return "MODEL"
    # Which of the two typevet reads depends on who composes the prompt.
    return "DEFAULT_MODEL" if settings.typevet.framing else "MULTIMODAL_MODEL"
