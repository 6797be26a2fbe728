"""What an adapter returns."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class DecisionResult:
    adapter: str
    ok: bool
    probs: dict[str, Any] | None = None
    probs_source: str = "unknown"
    model: str = ""
    status: int | None = None
    error: str | None = None
    latency_s: float = 0.0
    usage: dict[str, Any] = field(default_factory=dict)
    request_body: Any = None
    raw: Any = None
    label: str | None = None
