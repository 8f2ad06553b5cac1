"""What is said of a sweep that runs: lines elsewhere, a live display on a terminal that is gone at the end."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clops_sweep import RunConfig
from clops_sweep.execution.display.best_cell import BestCell
from clops_sweep.execution.display.display_lines import ended, fitted
from clops_sweep.execution.display.live import SweepDisplay
from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import (
    Failed,
    Finished,
    FoundFinished,
    Paused,
    Report,
    Retrying,
    Running,
    Unrecorded,
)
from clops_sweep.experiment.events import Progress
from clops_sweep.experiment.spaces.run_names import Label, RunName

fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")


def job(seed: int, name: str = "Random storage", **settings: object) -> Job:
    return Job(f"run {name} {seed}", RunConfig(**{"seed": seed, **settings}), name=RunName.of(name))


NAN = float("nan")


@pytest.mark.parametrize(
    ("of", "report", "line"),
    [
        (
            job(3),
            Finished({"auc": 0.8123, "bwt": -0.0456}),
            "finished  Random storage, seed 3: validation AUC 0.812, BWT -0.046",
        ),
        (job(3), Finished({"auc": 0.8, "bwt": NAN}), "finished  Random storage, seed 3: validation AUC 0.800"),
        (
            job(3),
            Finished({"test_auc": 0.8123, "test_bwt": -0.0456}),
            "finished  Random storage, seed 3: test AUC 0.812, test BWT -0.046",
        ),
        (
            job(0, scenario="class_il_union"),
            Finished({"balanced_accuracy": 0.45, "balanced_accuracy_forgetting": 0.65}),
            "finished  Random storage, seed 0: validation balanced accuracy 0.450, forgetting 0.650",
        ),
        (job(3), FoundFinished(), "finished  Random storage, seed 3, in the store already"),
        (job(3), Failed(), "failed    Random storage, seed 3  (clops-sweep status shows why)"),
        (
            job(3),
            Failed("ValueError: not a number"),
            "failed    Random storage, seed 3: ValueError: not a number  (clops-sweep status shows more)",
        ),
        (job(3), Unrecorded("the disk is full"), "not recorded  Random storage, seed 3: the disk is full"),
    ],
)
def test_how_a_job_has_ended(of: Job, report: Finished | FoundFinished | Failed | Unrecorded, line: str) -> None:
    assert ended(of, report, "clops-sweep status") == line


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        ((Label("0.1", "storage_fraction"), Label("CLOPS")), "replay: storage_fraction 0.1, CLOPS"),
        (
            (Label("0.1", "storage_fraction"), Label("0.25", "acquisition_fraction"), Label("Random")),
            "replay: storage 0.1, acquisition 0.25, Random",
        ),
        (
            (Label("0.1", "storage_fraction"), Label("a variant with a name that fills the whole line alone")),
            "replay: b = 0.1, a variant with…hole line alone",
        ),
    ],
)
def test_the_line_of_a_finished_run_has_100_characters_at_most(labels: tuple[Label, ...], shown: str) -> None:
    of = Job("run", RunConfig(seed=12), name=RunName(labels, "replay"))
    line = ended(of, Finished({"auc": 0.8123, "bwt": -0.0456}), "status", 100)
    assert line == f"finished  {shown}, seed 12: validation AUC 0.812, BWT -0.046"
    assert len(line) <= 100


def test_a_line_has_symbols_or_one_score_rather_than_a_name_without_its_numbers() -> None:
    labels = Label("0.05", "storage_fraction"), Label("0.1", "acquisition_fraction"), Label("0", "split_seed")
    of = Job("run", RunConfig(scenario="class_il_union"), name=RunName(labels))
    report = Finished({"balanced_accuracy": 0.548, "balanced_accuracy_forgetting": 0.518})
    scores = "validation balanced accuracy 0.548"
    assert ended(of, report, "status", 100) == (
        f"finished  b = 0.05, a = 0.1, split 0, seed 0: {scores}, forgetting 0.518"
    )
    assert ended(of, report, "status", 85) == f"finished  b = 0.05, a = 0.1, split 0, seed 0: {scores}"


def test_the_columns_of_scores_are_named_once_where_their_words_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    values = {"balanced_accuracy": 0.5, "balanced_accuracy_forgetting": 0.1}
    jobs = [job(seed) for seed in range(2)]
    with SweepDisplay() as display:
        display.begin([it.config for it in jobs], Path("/tmp/log"))
        for it in jobs:
            display.report(it, Finished(values))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "scores: columns balanced_accuracy, balanced_accuracy_forgetting of runs"
    assert [line[:5] for line in lines[2:]] == ["[1/2]", "[2/2]"]


def test_one_count_goes_over_all_searches_of_a_launch(capsys: pytest.CaptureFixture[str]) -> None:
    """The bar was full at the end of each method, and empty at the start of the next one."""
    jobs = [job(seed) for seed in range(6)]
    configs = [it.config for it in jobs]
    with SweepDisplay() as display:
        display.begin(configs[:2], Path("log"), "search 'a': 2 trials, up to ", configs[2:])
        display.report(jobs[0], Finished({"auc": 0.5}))
        display.trial_ended("trial 1 failed", [jobs[1].run_id])
        assert display.counts == (2, 6)
        display.begin(configs[2:4], Path("log"), "search 'b': 2 trials, up to ", configs[4:])
        display.report(jobs[2], Failed("why"))
        display.report(jobs[3], Finished({"auc": 0.5}))
        display.begin(configs[4:5], Path("log"))  # one of the chosen runs is finished already
        display.report(jobs[4], Finished({"auc": 0.5}))
        assert display.counts == (5, 5)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "to do" in line] == [
        "search 'a': 2 trials, up to 2 runs to do, of up to 6 in this launch; log: log",
        "search 'b': 2 trials, up to 2 runs to do, of up to 6 in this launch; log: log",
        "1 run to do, of 5 in this launch (1 fewer than announced: stored already, or equal to others); log: log",
    ]
    assert [line.split()[0] for line in lines if line.startswith("[")] == ["[1/6]", "[3/6]", "[4/6]", "[5/5]"]


def test_names_are_shortened_by_their_labels_whatever_the_labels_say() -> None:
    shared = Label("Random storage, seed 0: mc_samples 5")
    names = [RunName((shared, Label(b, "storage_fraction")), "space: one, two") for b in ("0.1", "0.5")]
    assert str(names[0]) == "space: one, two: Random storage, seed 0: mc_samples 5, storage_fraction 0.1"
    assert fitted(names, 100) == [str(name) for name in names]
    short = "space: one, two: Random storage, seed 0: mc_samples 5, "
    assert fitted(names, 66) == [f"{short}storage 0.1", f"{short}storage 0.5"]
    assert fitted(names, 20) == ["storage 0.1", "storage 0.5"]
    assert fitted(names[:1], 20) == [f"{short}storage 0.1"]


def test_numbers_in_names_of_runs_keep_the_names_of_their_fields() -> None:
    labels = Label("0.00148", "learning_rate"), Label("8", "replay_ratio"), Label("0", "split_seed")
    assert str(RunName((Label("finetune"), labels[-1]))) == "finetune, split 0"
    job = Job("run", RunConfig(), name=RunName(labels, "trial 0"))
    shortened = {
        98: "trial 0: learning_rate 0.00148, replay_ratio 8, split 0",
        91: "trial 0: lr 0.00148, ratio = 8, split 0",
        78: "trial 0: …, ratio = 8, split 0",
        68: "trial 0: …, split 0",
    }
    for width, name in shortened.items():
        line = ended(job, Finished({"auc": 0.8123}), "status", width)
        assert line == f"finished  {name}, seed 0: validation AUC 0.812"


def test_the_best_cell_is_called_by_the_labels_that_its_runs_share() -> None:
    best = BestCell()
    shared = Label("Random storage, uncertain")
    best.add(RunName((shared, Label("uncertain"))), RunConfig(seed=0), {"auc": 0.5})
    best.add(RunName((shared, Label("seed 1"))), RunConfig(seed=1), {"auc": 0.7})
    assert str(best) == "validation AUC 0.600 (Random storage, uncertain, 2 runs)"


def test_each_data_set_and_scenario_has_a_best_cell() -> None:
    best = BestCell()
    hard = {"dataset": "mitbih", "network": "small_cnn", "epochs_per_task": 5, "learning_rate": 0.001}
    best.add(RunName.of("easy"), RunConfig(), {"auc": 0.9})
    best.add(RunName.of("hard, ER"), RunConfig(strategy="er", **hard), {"auc": 0.7})
    best.add(RunName.of("hard, none"), RunConfig(strategy="finetune", **hard), {"auc": 0.6})
    easy = "validation AUC 0.900 on synthetic, class_il (easy, 1 run)"
    assert str(best) == f"{easy}; validation AUC 0.700 on mitbih, class_il (hard, ER, 1 run)"


def test_the_best_cell_is_the_lowest_where_lower_is_better_and_never_one_without_a_value() -> None:
    best = BestCell()
    for name, strategy, forgetting in (("a", "er", NAN), ("b", "clops", 0.3), ("c", "finetune", 0.1)):
        best.add(RunName.of(name), RunConfig(strategy=strategy), {"forgetting": forgetting})
    assert str(best) == "validation forgetting 0.100 (c, 1 run)"


def test_runs_of_several_seeds_are_one_cell_after_their_ids_are_known() -> None:
    best = BestCell()
    first = RunConfig(task_classes=[[0, 1], [2, 3]])
    for config, auc in ((first, 0.5), (first.with_seed(1), 0.7)):
        config.run_id("hash")
        best.add(RunName.of("paper"), config, {"auc": auc})
    assert str(best) == "validation AUC 0.600 (paper, 2 runs)"


def test_off_a_terminal_a_line_is_said_of_each_thing_that_happens(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on servers that build and test
    jobs = [job(seed, name="how much: storage_fraction 0.1, " + "long " * 30) for seed in range(4)]
    reports: list[tuple[Job, Report]] = [
        (jobs[0], Running(Progress(2, "a", 6, 2, 40), resumed=True)),
        (jobs[0], Running(Progress(2, "a", 6, 3, 40))),
        (jobs[0], Retrying()),
        (jobs[0], Running(Progress(2, "a", 6, 0, 40), resumed=True)),
        (jobs[0], Finished({"auc": 0.8, "bwt": 0.1})),
        (jobs[1], Running(Progress(1, "a", 6, 1, 40))),
        (jobs[1], Paused({}, 0.5)),
        (jobs[1], Running(Progress(3, "a", 6, 0, 40), resumed=True)),  # a resumed run of the same sweep
        (jobs[1], Failed()),
        (jobs[2], Running(Progress(1, "a", 6, 1, 40))),
    ]
    with SweepDisplay("clops-sweep status --results out") as display:
        display.begin([it.config for it in jobs], Path("/tmp/log"))
        display.starting("starting Ray")
        for it, report in reports:
            display.started(it)
            display.report(it, report)
        assert display.unfinished() == [jobs[2]]
        display.trial_ended("trial 3 failed", [jobs[3].run_id])
    said = capsys.readouterr().out
    name = "how much: storage_fraction 0.1, " + "long " * 30
    finished = said.splitlines()[4]
    assert len(finished) == 100
    assert said.splitlines() == [
        "4 runs to do; log: /tmp/log",
        "starting Ray",
        f"resumed   {name}, seed 0: at task 2/6, epoch 3/40, from its checkpoint",
        f"resumed   {name}, seed 0: at task 2/6, epoch 1/40, from its checkpoint",
        "[1/4] finished  how much: storage_fr… long long long long , seed 0: validation AUC 0.800, BWT +0.100",
        f"[2/4] failed    {name}, seed 1  (clops-sweep status --results out shows why)",
        "trial 3 failed",
    ]


ON_A_TERMINAL = """
import time
from pathlib import Path
from clops_sweep import RunConfig
from clops_sweep.execution.display.live import SweepDisplay
from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import Finished, Running
from clops_sweep.experiment.events import Progress
from clops_sweep.experiment.spaces.run_names import Label, RunName

fractions = Label("0.1", "storage_fraction"), Label("0.25", "acquisition_fraction")
labels = (*fractions, Label("Random storage and acquisition"))
names = [RunName(labels), RunName.of("CLOPS")]
jobs = [Job(f"run {i}", RunConfig(mc_samples=5 + i), name=names[i]) for i in (0, 1)]
with SweepDisplay() as display:
    display.begin([job.config for job in jobs], Path.cwd() / "log")
    display.finished_before(lambda: [(names[1], RunConfig(mc_samples=6), {"auc": 0.4, "bwt": 0.1})])
    display.starting("starting Ray")
    time.sleep(0.4)
    for job in jobs:
        display.started(job)
    display.stops_in_order = True
    display.report(jobs[1], Finished({"auc": 0.8, "bwt": 0.1}, 60.0))
    display.not_stored(1)
    time.sleep(0.4)
    display.not_stored(0)
    display.report(jobs[0], Running(Progress(2, "a", 6, 2, 40), resumed=True))
    display.report(jobs[0], Running(Progress(2, "a", 6, 4, 40)))
    Path("ready").touch()
    while not display.interrupted:
        time.sleep(0.01)
    time.sleep(0.4)
    display.stopping()
    time.sleep(0.4)
print("interrupted; resume with: ...")
"""
COLUMNS = 60


@pytest.fixture
def terminal(tmp_path: Path) -> Callable[[str], str]:
    """What a terminal gets of a program with a display, which its user interrupts where it is ready for that."""

    def run(program: str) -> str:
        child, end = pty.fork()
        if child == 0:
            os.chdir(tmp_path)
            environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "xterm"}
            os.execve(sys.executable, [sys.executable, "-c", program], environment)
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        written, pressed, began = b"", False, time.monotonic()
        while time.monotonic() - began < 60:
            try:
                written += os.read(end, 4096)
            except OSError:  # all is said
                break
            # What the terminal has not read yet when an interrupt comes is thrown away by the kernel.
            if (tmp_path / "ready").exists() and not (pressed or select.select([end], [], [], 0)[0]):
                pressed = bool(os.write(end, b"\x03"))
        os.waitpid(child, 0)
        os.close(end)
        return written.decode()

    return run


def test_a_terminal_shows_where_everything_is_and_loses_it_at_the_end(terminal: Callable[[str], str]) -> None:
    written = terminal(ON_A_TERMINAL)
    shown = re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "", written)
    for said in (
        "0 finished, 0 running, 0 failed, 2 pending; starting Ray",
        "1 finished (1 not stored yet), 1 running, 0 failed, ",
        "1 finished, 1 running, 0 failed, 0 pending; about ",
        "1 finished, 1 running, 0 failed, 0 pending; stopping",
        "^C",
    ):
        assert said in shown
    assert re.search(r"\nstorage 0.1, [^\n]*…  seed 0  task 2/6, epoch 4/40\s", shown)
    assert "\x1b[2K" in written[written.rindex("pending; ") :]
    assert shown.split()[-4:] == ["interrupted;", "resume", "with:", "..."]


def test_a_sweep_whose_time_is_up_is_stopped_at_once_by_an_interrupt() -> None:
    """An epoch may hang: the thread that looks after it interrupts once."""
    with SweepDisplay(stop_at=time.monotonic()) as display:
        display.stops_in_order = True
        assert display.interrupted
        display.stopping()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_sweep_that_stops_says_how_to_go_on_and_ends_if_ray_ends_too(capsys: pytest.CaptureFixture[str]) -> None:
    from clops_sweep.execution.computing.on_ray import ClusterWarnings

    def wait_for_workers(warnings: ClusterWarnings) -> None:
        warnings.warn("the scheduler no longer answers")
        time.sleep(10)  # they have ended

    with SweepDisplay() as display:
        warnings = ClusterWarnings(display, in_main_thread=True)
        warnings.warn("the head no longer answers")
        display.interrupted = True
        with pytest.raises(KeyboardInterrupt):
            wait_for_workers(warnings)
        warnings.warn("the head no longer answers")  # while this one ends
        time.sleep(0.1)
        ClusterWarnings(display, in_main_thread=False).warn("of a sweep in another thread")
        time.sleep(0.1)
    first, *others = capsys.readouterr().out.splitlines()
    assert first == "the head no longer answers"
    for line in others:
        assert line.endswith("the same sweep, started again, goes on from the last checkpoints")
    assert len(others) == 2


def test_a_long_number_is_left_out_before_what_is_short() -> None:
    """Of five tuned values only the first was shown, since its name and digits are long."""
    labels = (
        Label("0.000316228", "learning_rate"),
        Label("0.132345", "storage_fraction"),
        Label("random", "storage_order"),
        Label("3", "split_seed"),
    )
    job = Job("run", RunConfig(), name=RunName(labels, "trial 0"))
    line = ended(job, Finished({"auc": 0.8123, "bwt": -0.03}), "status")
    expected = "trial 0: lr 0.000316, b = 0.132, random, split 3, seed 0: validation AUC 0.812, BWT -0.030"
    assert line == f"finished  {expected}"
    narrow = ended(job, Finished({"auc": 0.8123, "bwt": -0.03}), "status", 80)
    assert narrow == "finished  trial 0: …, b = 0.132, random, split 3, seed 0: validation AUC 0.812"
    long = Job("run", RunConfig(), name=RunName(labels[1:3], "a_search_space_with_a_long_name_that_has_no_room"))
    name = ended(long, Finished({"auc": 0.8123}), "status", 80).partition(", seed")[0]
    assert name == "finished  a_search_s…as_no_room: b = 0.132, random"
