"""The logs of launches: what a run printed, and its scores as JSON lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from clops_sweep.experiment.events import Progress
from clops_sweep.store.run_logs import EpochScores, ScoresFile, epoch_scores, mark, printed_by, scores_file

RUN, OTHER = "0123456789abcdef01234567", "f" * 24


def scores(task: int, epoch: int, value: float) -> EpochScores:
    """Scores after an epoch of a run whose tasks have names that look like the readable log."""
    name = 'epoch 1 of 2: auc 0.5 ("a")\n[run '
    return EpochScores(Progress(task, name, 2, epoch, 2), "auc", {name: value})


def test_the_lines_of_a_run_are_those_with_its_mark(tmp_path: Path) -> None:
    log = tmp_path / "1.log"
    lines = [
        f"\x1b[36m(Worker pid=7)\x1b[0m {mark(RUN)}first",
        f"{mark(OTHER)}of another run, which names {mark(RUN)}",
        f"{mark(RUN)}] and [run ] are text",
        f"{RUN} without a mark",
        f"[run ] {RUN}",
        f"{mark(RUN)}last, without an end",
    ]
    log.write_text("\n".join(lines))
    expected = ["first", "] and [run ] are text", "last, without an end"]
    assert list(printed_by(RUN, log)) == list(printed_by(RUN[:8], log)) == expected


def test_scores_are_read_as_written_the_last_of_each_epoch(tmp_path: Path) -> None:
    first, second = ScoresFile(tmp_path / "1.log"), ScoresFile(tmp_path / "2.log")
    assert epoch_scores(RUN, tmp_path) == []
    first.add([(RUN, scores(1, 1, 0.1 + 0.2)), (OTHER, scores(1, 1, 0.9))])
    first.add([(RUN, scores(1, 2, 0.4))])
    second.add([(RUN, scores(2, 1, 0.6)), (RUN, scores(1, 2, 0.5))])
    assert epoch_scores(RUN, tmp_path) == [scores(1, 1, 0.1 + 0.2), scores(1, 2, 0.5), scores(2, 1, 0.6)]
    assert epoch_scores(OTHER, tmp_path) == [scores(1, 1, 0.9)]


@pytest.mark.parametrize(
    "line",
    [
        f'{{"run_id": "{RUN}"}}',
        f'["{RUN}"]',
        f'{{"run_id": "{RUN}", "task": "1", "task_name": "a", "tasks": 2, "epoch": 1, "epochs": 2, '
        '"measure": "auc", "values": {}}',
        f'{{"run_id": "{RUN}", "task": 1, "task_name": "a", "tasks": 2, "epoch": 1, "epochs": 2, '
        '"measure": "auc", "values": {"a": NaN}}',
        "[" * 100_000 + RUN,
    ],
)
def test_lines_that_are_no_scores_are_skipped(line: str, tmp_path: Path) -> None:
    log = tmp_path / "1.log"
    scores_file(log).write_text(f"{line}\n")
    ScoresFile(log).add([(RUN, scores(1, 1, 0.5))])
    assert epoch_scores(RUN, tmp_path) == [scores(1, 1, 0.5)]


def test_of_a_launch_that_was_killed_all_but_the_last_line_is_read(tmp_path: Path) -> None:
    log = tmp_path / "1.log"
    ScoresFile(log).add([(RUN, scores(1, epoch, 0.5)) for epoch in (1, 2)])
    content = scores_file(log).read_bytes()
    end_of_first = content.index(b"\n")
    for cut in range(len(content)):
        scores_file(log).write_bytes(content[:cut])
        whole = (cut >= end_of_first) + (cut >= len(content) - 1)
        assert len(epoch_scores(RUN, tmp_path)) == whole


def test_lines_after_a_full_disk_begin_anew(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    log = tmp_path / "1.log"
    file = ScoresFile(log)
    file.add([(RUN, scores(1, 1, 0.5))])
    room = scores_file(log).stat().st_size + 20
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        file.add([(RUN, scores(1, 2, 0.6))])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert scores_file(log).stat().st_size == room, "half of a line"
    file.add([(RUN, scores(2, 1, 0.7))])
    assert epoch_scores(RUN, tmp_path) == [scores(1, 1, 0.5), scores(2, 1, 0.7)]
