"""Measurement of processor time, which depends little on other load of the machine."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path


def seconds(work: Callable[[], object], *, at_least: float = 0.3, rounds: int = 5) -> float:
    """Return the processor time of one call: the best of several rounds, which take `at_least` seconds in total."""
    calls = 1
    while True:
        taken = _of(work, calls)
        if taken * rounds >= at_least:
            break
        calls *= 4
    return min([taken, *(_of(work, calls) for _ in range(rounds - 1))]) / calls


def _of(work: Callable[[], object], calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        work()
    return time.process_time() - start


def seconds_in_turn(works: list[Callable[[], object]], rounds: int, at_least: float = 0.15) -> list[float]:
    """Return the processor time of a call of each: the best of several rounds, in which they take turns."""
    calls = []
    best = [float("inf")] * len(works)
    for work in works:
        work()
        began = time.process_time()
        work()
        calls.append(max(1, round(at_least / max(1e-6, time.process_time() - began))))
    for _ in range(rounds):
        for i, work in enumerate(works):
            began = time.process_time()
            for _ in range(calls[i]):
                work()
            best[i] = min(best[i], (time.process_time() - began) / calls[i])
    return best


def cpu_model() -> str:
    """Return the name of the processor."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        fields = dict(line.split(":", 1) for line in info.read_text().splitlines() if ":" in line)
        found = {key.strip(): value.strip() for key, value in fields.items()}
        if "model name" in found:
            where = [
                f"{word} {found[key]}" for word, key in (("family", "cpu family"), ("model", "model")) if key in found
            ]
            return f"{found['model name']} ({', '.join(where)})"
    return platform.processor() or platform.machine()


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; all columns except the first are right-aligned."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])
