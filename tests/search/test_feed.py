"""Studies and the jobs that come of them, with real databases and stores and with workers that train nothing."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import optuna
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.pruners import SuccessiveHalvingPruner
from optuna.storages.journal import JournalFileBackend

from clops_sweep import FloatDistribution, IntDistribution, OptunaSearch, RunConfig, SearchSpace, SuccessiveHalving
from clops_sweep.errors import UsageError
from clops_sweep.execution.display.live import SweepDisplay
from clops_sweep.execution.feeding.only_driver import only_driver
from clops_sweep.execution.feeding.search_feed import SearchFeed
from clops_sweep.execution.reports import AttemptFailed, Finished
from clops_sweep.experiment.spaces.optuna_search import Direction
from clops_sweep.search.pruning import goes_on
from clops_sweep.search.records import STUDIES, StudyRecord, TrialRecord
from clops_sweep.search.storage import open_journal
from clops_sweep.search.study import open_study
from clops_sweep.search.trials import read_study
from clops_sweep.store.run_store import RunStore
from tests.helpers.relays import relay_of

PARAMETERS = {
    "learning_rate": FloatDistribution(1e-5, 1e-2, log=True),
    "mc_samples": IntDistribution(5, 50, step=5),
    "storage": {"by beta": {}, "random": {"storage_order": "random"}},
}
FEW = {"storage_fraction": FloatDistribution(0.1, 0.3, step=0.1), "acquisition": ["bald_mcd", "random"]}


def space(**arguments: Any) -> SearchSpace:
    seeds = arguments.pop("seeds", range(2))
    search = OptunaSearch(**{"parameters": PARAMETERS, "n_trials": 6, "max_concurrent": 1, **arguments})
    return SearchSpace(name="it", base=RunConfig(), search=search, seeds=seeds)


def study(world: Any, of: SearchSpace) -> StudyRecord:
    return read_study(of, world.store, world.data)


def configs(of: SearchSpace, trial: TrialRecord) -> list[RunConfig]:
    return [of.base.replace(**of.search.settings(trial.labels), seed=seed) for seed in of.seeds]


def choices(record: StudyRecord) -> list[Any]:
    return [(trial.number, dict(trial.labels), trial.state, trial.values) for trial in record.trials]


# --- trials are runs --------------------------------------------------------------------------------------------------


def test_a_trial_is_worth_the_mean_over_its_seeds_and_its_runs_are_ordinary_rows(world: Any) -> None:
    it = space(objectives={"auc": "maximize", "bwt": "maximize", "seconds": "minimize"})
    said = world.finish(it)
    record = study(world, it)
    runs = pd.read_parquet(world.folder / "runs").set_index("run_id")
    assert [trial.state for trial in record.trials] == ["complete"] * 6
    assert len(runs) == 12
    for trial in record.trials:
        assert list(trial.run_ids) == world.run_ids(configs(it, trial))
        rows = runs.loc[list(trial.run_ids)]
        assert rows["seed"].tolist() == [0, 1]
        assert rows["learning_rate"].tolist() == [trial.labels["learning_rate"]] * 2
        expected = fmean(world.so_far(config, world.tasks) for config in configs(it, trial))
        assert trial.values == (pytest.approx(expected, rel=1e-12), pytest.approx(rows["bwt"].mean()), 2.0)
    assert set(world.trained.values()) == {1}
    assert said.lines[0].startswith("trial 0 complete: auc 0.")
    assert world.finish(it).lines == []  # there is nothing left to do


def test_the_best_trials_are_optuna_s(world: Any) -> None:
    objectives = {"auc": "maximize", "bwt": "maximize", "mc_samples": "minimize"}
    it = space(objectives=objectives, n_trials=9, seeds=[3])
    world.finish(it)
    theirs = optuna.load_study(study_name="it", storage=open_journal(world.store))
    assert [trial.number for trial in study(world, it).best] == [trial.number for trial in theirs.best_trials]
    assert theirs.metric_names == list(objectives)
    one = replace(it, name="one", search=replace(it.search, objectives={"auc": "maximize"}))
    said = world.finish(one)
    (best,) = study(world, one).best
    assert best.values == (max(trial.values[0] for trial in study(world, one).trials if trial.values),)
    assert said.best[-1].startswith(f"trial {best.number} complete: auc {best.values[0]:.3f} ")


def test_runs_that_are_finished_are_not_repeated(world: Any) -> None:
    it = space(parameters=FEW, n_trials=14, sampler="random")
    half = replace(it, name="half", search=replace(it.search, parameters=FEW | {"acquisition": ["random"]}))
    world.finish(half)
    assert len(world.trained) == 3 * 2 * world.tasks
    said = world.finish(it, places=4)
    # 3 x 2 choices and 2 seeds, and 14 trials: all but the first of a choice find their runs in the store
    assert len(world.trained) == 3 * 2 * 2 * world.tasks
    assert set(world.trained.values()) == {1}
    assert Counter(said.statuses) == {"FoundFinished": 28 - 6}
    fractions = pd.read_parquet(world.folder / "runs")["storage_fraction"]
    assert set(fractions) == {0.1, 0.2, 0.3}  # as a grid has them


@pytest.mark.filterwarnings("ignore:`constraints_func` has been deprecated:FutureWarning")
def test_an_error_of_the_user_s_constraints_is_not_taken_for_a_damaged_journal(world: Any) -> None:
    def constraints(trial: optuna.trial.FrozenTrial) -> list[float]:
        raise LookupError("no such table")

    it = space(sampler="tpe", sampler_options={"constraints_func": constraints}, n_trials=2, seeds=[0])
    feed, _ = world.driver(it)
    (job,) = feed.next_jobs(1)
    feed.report(job, world.work(job))
    assert feed.error == "search space 'it': sampler_options of 'tpe' (constraints_func): LookupError: no such table"


@pytest.mark.parametrize("max_concurrent", [None, 3, 9])
def test_trials_of_one_choice_are_not_computed_beside_each_other(world: Any, max_concurrent: int | None) -> None:
    it = space(parameters={"acquisition": ["bald_mcd", "random"]}, n_trials=7, max_concurrent=max_concurrent)
    world.finish(it, places=6)
    assert set(world.trained.values()) == {1}
    assert len(world.trained) == 2 * 2 * world.tasks
    assert [trial.state for trial in study(world, it).trials] == ["complete"] * 7


@pytest.mark.parametrize("max_concurrent", [None, 8])
def test_a_suggestion_that_waits_for_equal_runs_takes_a_place(world: Any, max_concurrent: int | None) -> None:
    """Otherwise all trials would be suggested at once, none of which has seen a result."""
    parameters = {"learning_rate": [1e-3, 1e-4], "acquisition": ["bald_mcd", "random"]}
    it = space(parameters=parameters, n_trials=40, max_concurrent=max_concurrent, seeds=[0])
    feed, _ = world.driver(it)
    jobs = []
    while (taken := feed.next_jobs(8)) is not None:
        jobs += taken
    assert len(jobs) <= 4
    assert len(study(world, it).trials) == 8


# --- the same search again --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sampler", ["tpe", "nsga2", *(pytest.param(it, marks=pytest.mark.nightly) for it in ("random", "gp", "nsga3"))]
)
def test_a_seed_of_the_sampler_decides_and_more_trials_are_the_difference_only(world: Any, sampler: str) -> None:
    options = {"population_size": 2} if sampler.startswith("nsga") else {}
    options = {"n_startup_trials": 2} if sampler in ("tpe", "gp") else options
    it = space(sampler=sampler, sampler_options=options, n_trials=5, seeds=[0])
    first = replace(it, search=replace(it.search, n_trials=3))
    world.finish(first)
    begun = choices(study(world, first))
    trained = world.trained.copy()
    world.finish(it)
    assert choices(study(world, it))[:3] == begun
    assert not (world.trained - trained).keys() & trained.keys()
    again = type(world)(world.folder.with_name("again"))
    again.finish(it)
    assert choices(study(again, it)) == choices(study(world, it))
    other = type(world)(world.folder.with_name("other"))
    other.finish(replace(first, search=replace(first.search, sampler_seed=1)))
    assert choices(study(other, first)) != begun


@given(kills=st.lists(st.integers(0, 9), min_size=1, max_size=5), data=st.data(), pruning=st.booleans())
@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_drivers_may_be_killed_at_any_moment(world: Any, kills: list[int], data: st.DataObject, pruning: bool) -> None:
    it = space(n_trials=5, pruning=pruning, sampler_options={"n_startup_trials": 2})
    place = world.folder / uuid.uuid4().hex
    undisturbed = type(world)(place / "undisturbed")
    undisturbed.finish(it)
    killed = type(world)(place / "killed")
    for steps in kills:
        feed, _ = killed.driver(it)
        for _ in range(steps):
            jobs = feed.next_jobs(1)
            if jobs is None:
                break
            (job,) = jobs
            happened = data.draw(st.sampled_from(["reported", "recorded", "nothing"]))
            if happened == "nothing":
                break  # killed together with its worker
            result = killed.work(job)
            if happened == "recorded":
                break  # killed before it heard of the result
            feed.report(job, result)
    killed.finish(it)
    assert choices(study(killed, it)) == choices(study(undisturbed, it))
    assert killed.trained == undisturbed.trained
    assert RunStore(killed.folder).statuses() == RunStore(undisturbed.folder).statuses()


def test_a_run_that_another_launch_computes_meanwhile_counts_once(world: Any) -> None:
    """Runs of trials are not reserved."""
    it = space(n_trials=1, seeds=[0])
    feed, _ = world.driver(it)
    (job,) = feed.next_jobs(1)
    type(world)(world.folder).work(job)  # a grid of another launch
    feed.report(job, world.work(job))
    (trial,) = study(world, it).trials
    (value,) = trial.values
    for table, rows in {"runs": 1, "r_matrix": 2 * world.tasks**2}.items():
        assert len(RunStore(world.folder).read(table)) == rows
    assert value == RunStore(world.folder).read("runs")["auc"].item()


# --- pruning ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pruner", [SuccessiveHalving(), SuccessiveHalving(min_resource=2, reduction_factor=3)])
def test_pruning_is_successive_halving_over_tasks(world: Any, pruner: SuccessiveHalving) -> None:
    it = space(n_trials=9, pruning=pruner)
    said = world.finish(it)
    record = study(world, it)
    reached: dict[int, list[float]] = {}
    for trial in record.trials:
        tasks = pruner.min_resource
        while tasks < world.tasks:
            value = fmean(world.so_far(config, tasks) for config in configs(it, trial))
            assert trial.intermediate[tasks] == pytest.approx(value, rel=1e-12)
            reached.setdefault(tasks, []).append(value)
            better = sum(other > value for other in reached[tasks])
            if better >= max(1, len(reached[tasks]) // pruner.reduction_factor):
                break
            tasks *= pruner.reduction_factor
        expected = "pruned" if tasks < world.tasks else "complete"
        assert (trial.number, trial.state) == (trial.number, expected)
        # A pruned trial has trained what it was judged by and no more, and has no row in the store.
        for run_id in trial.run_ids:
            trained = [task for (run, task), times in world.trained.items() if run == run_id and times == 1]
            assert sorted(trained) == list(range(1, min(tasks, world.tasks) + 1))
            assert (run_id in world.store.statuses()) == (expected == "complete")
    assert 0 < len(record.of("pruned")) < 9
    assert len(said.not_computed) == 2 * len(record.of("pruned"))


def test_each_run_of_a_search_ends_by_a_job_or_is_left_out(world: Any) -> None:
    it = space(parameters=FEW, n_trials=9, pruning=True)
    feed, _ = world.driver(it)
    ended = 0
    while not feed.finished:
        (job,) = feed.next_jobs(1)
        report = world.work(job)
        feed.report(job, report)
        ended += isinstance(report, Finished)
    assert study(world, it).of("pruned")
    assert ended + len(feed.left_out) == 9 * 2


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@given(values=st.lists(st.floats(0, 1) | st.sampled_from([0.5, 0.25, float("nan")]), min_size=1, max_size=12))
@settings(max_examples=30)
def test_a_trial_goes_on_as_with_optuna_s_pruner(direction: Direction, values: list[float]) -> None:
    theirs = optuna.create_study(direction=direction, pruner=SuccessiveHalvingPruner(1, 3))
    for number, value in enumerate(values):
        trial = theirs.ask()
        trial.report(value, 1)
        assert goes_on(value, values[:number], 3, direction) == (not trial.should_prune())


class Killed(KeyboardInterrupt):
    """The driver dies here."""


@pytest.mark.nightly
def test_a_driver_may_be_killed_at_each_write_to_the_journal(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next driver ends trials that a dead one has pruned; none trains past its rung."""
    it = space(n_trials=4, pruning=True, seeds=[0])
    undisturbed = type(world)(world.folder / "undisturbed")
    writes = []
    append = JournalFileBackend.append_logs

    def counted(self: JournalFileBackend, logs: list[dict[str, Any]]) -> None:
        append(self, logs)
        writes.append(logs)

    monkeypatch.setattr(JournalFileBackend, "append_logs", counted)
    undisturbed.finish(it)
    expected = [(trial.state, trial.intermediate) for trial in study(undisturbed, it).trials]
    assert {state for state, _ in expected} == {"complete", "pruned"}
    count = len(writes)
    for last in range(1, count):
        killed = type(world)(world.folder / f"killed_{last}")

        def dies(self: JournalFileBackend, logs: list[dict[str, Any]], killed: Any = killed, last: int = last) -> None:
            append(self, logs)
            writes.append(logs)
            if len(writes) == last:
                raise Killed

        writes.clear()
        with monkeypatch.context() as patch:
            patch.setattr(JournalFileBackend, "append_logs", dies)
            with pytest.raises(Killed):
                killed.finish(it)
        killed.finish(it)
        assert choices(study(killed, it)) == choices(study(undisturbed, it)), last
        assert [(trial.state, trial.intermediate) for trial in study(killed, it).trials] == expected, last
        assert killed.trained == undisturbed.trained, last


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_failed_run_fails_its_trial_until_it_is_retried(world: Any) -> None:
    it = space(n_trials=3, seeds=range(3))
    feed, said = world.driver(it)
    jobs = feed.next_jobs(1)
    relay = relay_of(feed, world.store, said)
    relay.lost(jobs, AttemptFailed("the worker died", "the worker died"))
    assert feed.next_jobs(1) == jobs  # once more, from its checkpoint
    relay.lost(jobs, AttemptFailed("the worker died", "the worker died"))
    (job,) = jobs
    record = study(world, it)
    assert (record.trials[0].state, record.trials[0].error) == ("failed", f"run {job.run_id} has failed")
    assert world.store.statuses() == {job.run_id: "failed"}
    assert len(said.not_computed) == 2  # seeds that were not begun
    world.finish(it)
    record = study(world, it)
    assert [trial.state for trial in record.trials] == ["failed", "complete", "complete"]

    world.finish(it, retry=True)
    record = study(world, it)
    assert [(trial.number, trial.state) for trial in record.trials] == [
        (1, "complete"),
        (2, "complete"),
        (3, "complete"),
    ]
    assert record.trials[2].run_ids[0] == job.run_id
    assert set(world.store.statuses().values()) == {"finished"}
    assert world.finish(it, retry=True).lines == []


@pytest.mark.parametrize("is_returned", [False, True])
def test_a_run_that_pauses_after_its_trial_failed_is_counted(world: Any, is_returned: bool) -> None:
    it = space(n_trials=1, pruning=True)
    study_there = open_study(it, world.store, world.data)
    with SweepDisplay() as display:
        feed = SearchFeed(
            it, study_there, world.store, lambda config: "generated0001", retry_failed=False, display=display
        )
        display.begin([it.base] * 2, world.folder / "launch.log", "search 'it': 1 trial, up to ")
        relay = relay_of(feed, world.store, display, max_retries=0)
        first, second = feed.next_jobs(2), feed.next_jobs(2)
        for (job,) in (first, second):
            relay.started(job)
        assert display.counts == (0, 2)
        relay.lost(first, AttemptFailed("the worker died", "the worker died"))
        assert display.unfinished() == list(second)
        if is_returned:
            feed.returned(second)
        else:
            relay.pass_on(second, [(0, world.work(second[0]))])
            feed.returned(second)
        assert feed.finished
        assert display.unfinished() == []
        assert display.counts == (2, 2)


def test_a_journal_that_is_damaged_meanwhile_ends_the_search(world: Any) -> None:
    it = space(n_trials=3, seeds=[0])
    damage = b"no line of a journal\n" * 2
    journal = world.folder / STUDIES

    feed, said = world.driver(it)
    (job,) = feed.next_jobs(1)
    feed.report(job, world.work(job))
    journal.write_bytes(journal.read_bytes() + damage)
    assert feed.finished
    assert feed.next_jobs(1) is None
    assert "damaged, or edited" in feed.error

    journal.write_bytes(journal.read_bytes().removesuffix(damage))
    study_there = open_study(it, world.store, world.data)
    study_there.ask()
    journal.write_bytes(journal.read_bytes() + damage)
    feed = SearchFeed(it, study_there, world.store, lambda config: "generated0001", retry_failed=False, display=said)
    feed.begin()
    assert feed.finished
    assert "damaged, or edited" in feed.error


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_search_has_one_driver_at_a_time(tmp_path: Path) -> None:
    it, store = space(), RunStore(tmp_path)
    with only_driver(it, store):
        with (
            pytest.raises(UsageError, match="search space 'it' is being run by another driver"),
            only_driver(it, store),
        ):
            pass
        with only_driver(replace(it, name="other"), store):
            pass
    with only_driver(it, store):
        pass


@pytest.mark.parametrize("name", [STUDIES, "a b", "ä" * 50])
def test_a_search_of_any_name_has_a_lock_of_its_own(tmp_path: Path, name: str) -> None:
    it, store = replace(space(), name=name), RunStore(tmp_path / "results")
    locks = tmp_path / "results" / ".work" / "locks"
    open_journal(store)
    before = set(tmp_path.rglob("*"))
    with only_driver(it, store):
        (lock,) = set(tmp_path.rglob("*")) - before
        assert lock.parent == locks
        with only_driver(replace(it, name="a-b"), store):
            open_journal(store)
        with pytest.raises(UsageError, match="is being run by another driver"), only_driver(it, store):
            pass
