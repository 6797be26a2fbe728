"""The runner: one task after the other, by an adapter that brings its own results."""

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from jevexp.core import task as ours
from jevexp.core.decision import Decision, ProbsSource
from jevexp.harness.runner import Tariff
from jevexp.harness.scoring import score

from .adapters.base import DecisionResult
from .budget import BudgetExceeded, Ledger
from .tasks import Task

DEFAULT_RESERVE_USD = 0.02


class Runner:
    def __init__(
        self,
        adapter: Any,
        ledger: Ledger,
        raw_dir: Any,
        default_reserve_usd: float = DEFAULT_RESERVE_USD,
    ) -> None:
        self.adapter = adapter
        self.ledger = ledger
        self.raw_dir = _outside(raw_dir)
        self.default_reserve_usd = default_reserve_usd

    def run_task(self, task: Task) -> dict[str, Any]:
        adapter = self.adapter
        reserved = max(self.default_reserve_usd, adapter.reserve_estimate(task) or 0.0)
        meta = {"task_id": task.id}
        name = self.ledger.reserve(reserved, meta | {"adapter": adapter.name})
        prepare_s = None
        if callable(getattr(adapter, "prepare", None)):
            started = time.perf_counter()
            try:
                adapter.prepare(task)
            except Exception as error:  # noqa: BLE001
                print("prepare failed:", type(error).__name__, error)
            prepare_s = time.perf_counter() - started
        started = time.perf_counter()
        try:
            result = adapter.run(task)
        except Exception as error:  # noqa: BLE001
            result = DecisionResult(adapter.name, False, error=type(error).__name__)
        latency_s = time.perf_counter() - started
        raw = json.dumps(
            {"request": result.request_body, "response": result.raw, "http_status": result.status},
            ensure_ascii=False,
            allow_nan=False,
        ).encode()
        self.raw_dir.mkdir(parents=True, exist_ok=True)
        evidence = self.raw_dir / f"{hashlib.sha256(task.id.encode()).hexdigest()}.json"
        with evidence.open("xb") as file:
            file.write(raw)
        decision = Decision(
            ok=result.ok,
            model=result.model,
            probs=result.probs,
            label=result.label,
            probs_source=ProbsSource(result.probs_source),
            usage=result.usage,
        )
        tariff = Tariff(
            adapter.price_input_per_m,
            adapter.price_output_per_m,
            getattr(adapter, "cost_basis", None),
        )
        cost, basis = tariff.cost(decision)
        charged = reserved if cost is None else cost
        self.ledger.settle(name, charged, meta | {"basis": basis})
        verdict = score(ours.Task.model_validate(vars(task)), decision)
        record = {
            "task_id": task.id,
            "family": task.family,
            "split": task.split,
            "group": task.group,
            "ts": time.time(),
            "status": "ok" if result.ok else "failed",
            "ok": result.ok,
            "valid": verdict.valid,
            "correct": verdict.correct,
            "predicted": verdict.predicted,
            "ordinal_ev": verdict.ordinal_ev,
            "probs": verdict.probs,
            "probs_as_returned": result.probs if result.ok else None,
            "strict_valid": verdict.strict_valid,
            "renormalized": verdict.renormalized,
            "probs_source": result.probs_source,
            "model": result.model,
            "error": result.error,
            "schema_error": verdict.schema_error,
            "status_code": result.status,
            "latency_s": latency_s,
            "usage": result.usage,
            "cost_usd": cost,
            "cost_basis": basis,
            "reserved_usd": reserved,
            "charged_usd": charged,
            "raw_sha256": hashlib.sha256(raw).hexdigest(),
            "runtime": result.raw.get("runtime") if isinstance(result.raw, dict) else None,
        }
        return record if prepare_s is None else record | {"prepare_s": prepare_s}

    def run_all(
        self,
        tasks: list[Task],
        results_path: Any = None,
        delay_s: float = 0.0,
        progress_every: int = 10,
    ) -> list[dict[str, Any]]:
        del delay_s
        records: list[dict[str, Any]] = []
        path = _outside(results_path)
        path.parent.mkdir(parents=True, exist_ok=True)
        failures = 0
        with path.open("x") as results:
            for task in tasks:
                try:
                    record = self.run_task(task)
                except BudgetExceeded as error:
                    print("STOP:", error)
                    break
                records.append(record)
                results.write(json.dumps(record, ensure_ascii=False) + "\n")
                results.flush()
                os.fsync(results.fileno())
                if len(records) % progress_every == 0:
                    print(f"{len(records)}/{len(tasks)} completed")
                failed = not record["ok"] and record["status_code"] != 422
                failures = failures + 1 if failed else 0
                if record["status_code"] in (401, 403, 429) or failures >= 3:
                    print("STOP: the provider refuses or fails")
                    break
        return records


def _outside(path: Any) -> Path:
    resolved = Path(path).resolve()
    if resolved.is_relative_to(Path(__file__).resolve().parents[1]):
        raise ValueError("only outside the repository")
    return resolved
