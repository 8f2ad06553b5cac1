"""Measuring: processor time of this process, so that what else the machine does counts as little as possible."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path


def seconds(work: Callable[[], object], *, at_least: float = 0.3, rounds: int = 5) -> float:
    """Processor time of one call: the best of some rounds, which together take `at_least` seconds."""
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


def cpu_model() -> str:
    """The processor's name as the system gives it."""
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
    """A Markdown table; all columns but the first aligned to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])
