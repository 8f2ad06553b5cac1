"""Logs of launches, in a folder of this machine: the output of runs as text, and their scores as JSON lines."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from clops_sweep.experiment.events import Progress
from clops_sweep.store.run_store import RunStore

_DIGITS: Final = 12
"""Digits of the run's id in a mark."""

_MARK, _END_OF_MARK = "[run ", "] "
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
"""Colours of Ray, which puts its own mark before each line of a worker, and of the code of users."""

_SCORES = ".jsonl"


@dataclass(frozen=True)
class EpochScores:
    """Scores of a run after an epoch.

    Attributes:
        progress: the epoch, as the last one that has ended.
        measure: the headline measure of the scenario, such as auc.
        values: its value on each task so far, by name; on the validation split, or the test split with `curves="test"`.
    """

    progress: Progress
    measure: str
    values: Mapping[str, float]


def log_folder(store: RunStore) -> Path:
    """Return the folder with the logs of launches from this machine."""
    return store.log_folder / "logs"


def stacks_file(folder: Path, run_id: str) -> Path:
    """Return the file for the thread stacks of a worker that hung in an epoch of a run."""
    return folder / f"{run_id}.stacks"


def scores_file(log: Path) -> Path:
    """Return the file of scores beside the log of a launch."""
    return log.with_suffix(_SCORES)


def mark(run_id: str) -> str:
    """Return the beginning of each line that a run prints; empty without a run."""
    return f"{_MARK}{run_id[:_DIGITS]}{_END_OF_MARK}" if run_id else ""


def printed_by(run_id: str, log: Path) -> Iterator[str]:
    """Return the lines of a launch's log that a run printed.

    Args:
        run_id: its id, or an unambiguous prefix.
        log: the log file, to which Ray forwards the output of workers.
    """
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if run_id[:_DIGITS] not in line:
                continue
            _, _, marked = _COLOUR.sub("", line).partition(_MARK)
            digits, end, printed = marked.partition(_END_OF_MARK)
            if end and digits and (run_id.startswith(digits) or digits.startswith(run_id)):
                yield printed.removesuffix("\n")


class ScoresFile:
    """The file of scores of a launch, to which its driver adds lines: one JSON object an epoch.

    Args:
        log: the log of the launch.
    """

    def __init__(self, log: Path) -> None:
        self._file = scores_file(log)
        self._whole = True

    def add(self, scores: Sequence[tuple[str, EpochScores]]) -> None:
        """Add scores, each with the id of its run. Errors are ignored: the scores are in the rows of the run, too."""
        lines = [_line(run_id, of_epoch) for run_id, of_epoch in scores]
        if not lines:
            return
        if not self._whole:
            lines.insert(0, "\n")  # the disk was full in the middle of a line
        self._whole = False
        with suppress(OSError), self._file.open("a", encoding="utf-8") as file:
            file.writelines(lines)
            file.flush()
            self._whole = True


def epoch_scores(run_id: str, folder: Path) -> list[EpochScores]:
    """Return the scores of a run in the launches of a folder, the last ones of each epoch, in order.

    Lines that are no valid JSON are skipped, such as the last one of a launch that was killed.
    """
    by_epoch: dict[int, EpochScores] = {}
    for file in sorted(folder.glob(f"*{_SCORES}")):
        with suppress(OSError), file.open(encoding="utf-8", errors="replace") as lines:
            for of_epoch in _scores_of(run_id, lines):
                by_epoch[of_epoch.progress.step] = of_epoch
    return [by_epoch[step] for step in sorted(by_epoch)]


def _line(run_id: str, scores: EpochScores) -> str:
    content = {"run_id": run_id, **asdict(scores.progress), "measure": scores.measure, "values": dict(scores.values)}
    return f"{json.dumps(content)}\n"


def _scores_of(run_id: str, lines: Iterable[str]) -> Iterator[EpochScores]:
    for line in lines:
        if run_id not in line:
            continue
        with suppress(ValueError, RecursionError):
            content = json.loads(line)
            if isinstance(content, dict) and content.get("run_id") == run_id:
                scores = _valid(content)
                if scores is not None:
                    yield scores


def _valid(content: Mapping[str, Any]) -> EpochScores | None:
    """Return the scores in a line, or None."""
    progress = Progress.of(content)
    measure = content.get("measure")
    values = content.get("values")
    if progress is None or not isinstance(measure, str) or not isinstance(values, dict):
        return None
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in values.values()):
        return None
    return EpochScores(progress, measure, values)
