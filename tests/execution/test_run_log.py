"""What runs print is found again by the runs that printed it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from click.testing import CliRunner

from clops_sweep.cli.commands import command
from clops_sweep.execution.run_log import Marked, print_for, printed_by
from clops_sweep.store.run_store import RunStore

FIRST, SECOND, THIRD = ("a" * 24, "ab" * 12, "c" * 24)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """What Ray passes on of a worker that has had three runs, two of them in lockstep."""
    stream = io.StringIO()
    marked = Marked(stream)
    print("nobody's", file=marked)
    print_for((FIRST,))
    print("one line\nand", end=" ", file=marked)
    print("another", file=marked)
    print_for((SECOND, THIRD))
    print("of both", file=marked)
    print_for(())
    print("nobody's again", file=marked)
    RunStore(tmp_path / "results").open_for_writing()
    log = tmp_path / "results" / ".work" / "logs" / "1.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"\x1b[36m(pid=7)\x1b[0m {line}\n" for line in stream.getvalue().splitlines()))
    return log


def test_each_line_belongs_to_the_runs_that_were_under_way(log: Path) -> None:
    found = [list(printed_by(run, log)) for run in (FIRST, SECOND, THIRD, "c", "d" * 24)]
    assert found == [["one line", "and another"], ["of both"], ["of both"], ["of both"], []]
    assert "nobody's" in log.read_text()


def test_a_run_that_is_not_recorded_yet_has_lines_too(log: Path) -> None:
    arguments = ["--results", str(log.parents[2])]
    said = CliRunner().invoke(command, ["logs", THIRD[:6], *arguments])
    assert (said.exit_code, said.output) == (0, f"{log}:\n  of both\n")
    unknown = CliRunner().invoke(command, ["logs", "dddd", *arguments], standalone_mode=False)
    assert "run 'dddd': no run of " in str(unknown.exception)
