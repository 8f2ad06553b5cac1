"""What a sweep, its store and its models offer from Python, as functions of `clops_sweep`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from clops_sweep.arguments import named_arguments
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError, listed, nearest, prefixed, shown, speaking_python, warn_user
from clops_sweep.execution.display.live import SweepDisplay
from clops_sweep.execution.jobs import Resources, workers_asked
from clops_sweep.execution.launch import launch
from clops_sweep.execution.outcome import Outcome
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.limits import Keep, seconds_in
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.experiment.spaces.started_sweeps import check_may_sweep
from clops_sweep.planning.request import Request
from clops_sweep.planning.shard import Shard
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS

if TYPE_CHECKING:
    import pandas as pd

    from clops_sweep.analysis.report.write import ReportPaths
    from clops_sweep.analysis.update.criteria import Criteria
    from clops_sweep.analysis.update.report import UpdateReport
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.experiment.spaces.claims import Claim
    from clops_sweep.learning.encoders.encoders import Encoders
    from clops_sweep.learning.models.trained_model import TrainedModel
    from clops_sweep.planning.state import State


@named_arguments
@speaking_python()
def sweep(
    space: SearchSpace | Sequence[SearchSpace] | str | PathLike[str],
    results: str | PathLike[str] = "results",
    *,
    data_root: str | PathLike[str] | None = None,
    prepared_root: str | PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    limit: int | None = None,
    where: str | None = None,
    address: str | None = None,
    cpus_per_trial: float = 1,
    gpus_per_trial: float = 0,
    max_retries: int = 2,
    checkpoint_every: int = 0,
    epoch_timeout: float | None = None,
    retry_failed: bool = False,
    keep: Sequence[Literal["predictions", "models", "models:all"]] = (),
    observe: Sequence[str] = (),
    shard: str | None = None,
    ray: bool | None = None,
    stop_after: str | float | None = None,
    device: Literal["auto", "cpu", "gpu"] = "auto",
    nice: int = 0,
) -> Outcome:
    """Compute the unfinished runs of a search space, as `clops-sweep SPACE.py` does.

    Ctrl-C, or a notebook's stop button, checkpoints running trials and raises KeyboardInterrupt; the same call
    continues. In a script, call it under ``if __name__ == "__main__":``: commands that read the script's plug-ins
    refuse other calls.

    Example:
        >>> space = SearchSpace("first", RunConfig(epochs_per_task=1), {"strategy": ["finetune", "er"]}, seeds=[0])
        >>> outcome = sweep(space, "results", keep=["predictions", "models"])
        >>> outcome.counts
        {'finished': 2, 'pending': 0, 'failed': 0}

    Args:
        space: a search space, several, or the path of a search-space file.
        results: the store, a folder or a URI such as ``s3://bucket/results``.
        data_root: folder of the data sets as published; by default CLOPS_DATA_ROOT.
        prepared_root: folder of the prepared frames; by default CLOPS_PREPARED_ROOT, else in the user's cache.
        settings: values that override the base configs, by field.
        seeds: number of seeds, from 0, instead of the seeds of the search space.
        limit: maximum number of runs, or of trials of a search.
        where: condition on the runs, such as ``"storage_fraction == 0.5"``.
        address: address of a running Ray cluster (``auto`` or ``HOST:PORT``); by default, the cluster to which this
            process is connected, else a new one on this machine.
        cpus_per_trial: CPUs reserved for a trial, which computes on one.
        gpus_per_trial: GPUs, or share of a GPU, reserved for a trial; 0 chooses it by a run's memory and the cores.
        max_retries: number of retries of a run that raised an error or whose worker died.
        checkpoint_every: epochs of a task between checkpoints, in addition to those every 15 seconds (60 on S3) and
            after tasks of 2 seconds or more; 0 for none.
        epoch_timeout: time limit of an epoch in seconds, after which its run fails; None for no limit.
        retry_failed: whether to run failed runs again.
        keep: further results to store: ``"predictions"`` for every test instance after every task, ``"models"`` for the
            network after the last task, ``"models:all"`` for the network after every task.
        observe: experiment trackers and other observers, such as ``"tensorboard"`` or ``"mlflow:http://HOST:5000"``.
        shard: part of the runs to compute, such as ``"3/16"``, so that processes can share a store; not for searches.
        ray: False to compute in this process without Ray, one run after another; True to start Ray even if the runs
            would end sooner in this process; None to start it if it pays.
        stop_after: seconds, or a duration such as ``"3h55m"``, after which to write checkpoints and stop.
        device: ``"cpu"``, ``"gpu"``, or ``"auto"`` for the device of finished runs, else a GPU if the network gains.
        nice: niceness of the workers of a Ray cluster that is started here.

    Returns:
        The outcome: the state of all requested runs and searches. `Outcome.complete` is whether all are finished, and
        `Outcome.scores()` has the mean, interval and n of each configuration. A script prints the best of them, and
        where the results are.

    Raises:
        UsageError: the request, the data, the store or the cluster is invalid, or a command reads the script that calls
            it. Nothing has been computed.
        KeyboardInterrupt: the user stopped it. Finished runs and checkpoints are stored.
    """
    check_may_sweep()
    changes = {} if settings is None else settings
    selection = Selection.of(space, settings=changes, seeds=seeds, limit=limit, where=where)
    resources = Resources(
        address=address,
        cpus_per_trial=cpus_per_trial,
        gpus_per_trial=gpus_per_trial,
        max_retries=max_retries,
        checkpoint_every=checkpoint_every,
        epoch_timeout=epoch_timeout,
        observe=observe,
        workers=workers_asked(ray),
        device=device,
        nice=nice,
    )
    part = None if shard is None else _parsed("shard", shard, Shard.parsed)
    stop_at = None if stop_after is None else time.monotonic() + _parsed("stop_after", stop_after, seconds_in)
    kept = [keep] if isinstance(keep, str) else keep
    if not isinstance(kept, Collection) or any(name not in get_args(Keep) for name in kept):
        raise UsageError(f"keep = {shown(keep)}: expected some of {list(get_args(Keep))}")
    if not isinstance(retry_failed, bool):
        raise UsageError(f"retry_failed = {shown(retry_failed)}: expected True or False")
    for name, path in (("data_root", data_root), ("prepared_root", prepared_root)):
        if path is not None:
            _check_path(name, path)
    _check_path("results", results)
    store = RunStore.named(str(results), keep=kept)
    request = Request(selection, _data(store, data_root, prepared_root), store, part)
    display = partial(SweepDisplay, store.command("status"), stop_at)
    outcome = launch(request, resources, display, retry_failed=retry_failed, warn=warn_user)
    outcome = replace(outcome, scorer=_scores_of, doubter=_in_doubt)
    is_time_up = stop_at is not None and time.monotonic() >= stop_at
    is_by_user = outcome.interrupted and not is_time_up
    if is_by_user or not hasattr(sys, "ps1"):  # an interactive Python shows what the call returns
        print(outcome.in_lines(), flush=True)
    if is_by_user:
        raise KeyboardInterrupt  # a script that went on would read the results of an unfinished sweep
    return outcome


def _scores_of(state: State, metric: str | None) -> pd.DataFrame:
    from clops_sweep.analysis.tables.scores import scores_of

    return scores_of(state, metric)


def _in_doubt(state: State) -> list[str]:
    from clops_sweep.analysis.tables.best_terminal import state_in_doubt

    return state_in_doubt(state)


@named_arguments
@speaking_python()
def scores(
    space: SearchSpace | Sequence[SearchSpace] | str | PathLike[str],
    results: str | PathLike[str] = "results",
    metric: str | None = None,
) -> pd.DataFrame:
    """Return the scores of each configuration of a search space: mean, 95 % interval and n of test people.

    Configurations are sorted as in the report: by test scores, or by validation scores if there is a choice to make
    (docs/report.md). Trials of tuning are left out. `sweep(...).scores()` is the same after a sweep.

    Example:
        >>> table = scores(space, "results")
        >>> table[["configuration", "metric", "mean", "low", "high", "n"]].to_csv("scores.csv")

    Args:
        space: a search space, several, or the path of a search-space file.
        results: the store, a folder or a URI.
        metric: a column of `runs`; by default the first headline metric, of test people.

    Returns:
        A row for each configuration with finished runs. `mean` is over n units: patient splits, folds, or the seeds of
        one split (`unit`). `low` and `high` bound its interval, corrected for splits that share people (NaN below 3
        units); `lowest` and `highest` are over the units. `validation` is the mean on validation people. `finished` and
        `requested` count runs.

    Raises:
        UsageError: the space or store does not exist, or no run has the metric.
    """
    return _scores_of(_state_of(space, _existing(results)), metric)


@named_arguments
@speaking_python()
def differences(
    space: SearchSpace | Sequence[SearchSpace] | str | PathLike[str],
    results: str | PathLike[str] = "results",
    metric: str | None = None,
    baseline: str | None = None,
) -> pd.DataFrame:
    """Return the paired differences between the configurations of a search space, with intervals and p-values.

    They are those of its report: two configurations are compared on the patient splits, folds or seeds that both have.
    Of up to twelve configurations, all pairs are compared; of more, each with the first one or with fine-tuning.

    Example:
        >>> table = differences(space, "results")
        >>> table[["configuration", "baseline", "difference", "low", "high", "p_holm"]].to_csv("differences.csv")

    Args:
        space: a search space, several, or the path of a search-space file.
        results: the store, a folder or a URI.
        metric: a column of `runs`; by default the headline metrics, of test people.
        baseline: the name of a configuration, such as your method: only its pairs are returned, each the other
            configuration minus this one. p-values stay corrected for all pairs.

    Returns:
        A row for each pair and metric. `difference` is the mean of `configuration` minus `baseline` over n units
        (`unit`). `p` is two-sided, of the t-test that is corrected for splits that share people; `p_holm` is corrected
        by Holm over all pairs of the table in this metric, and `low` and `high` bound the interval of the coverage
        `level` at which Holm tests the pair: it excludes 0 exactly if `p_holm` is below 0.05. They are NaN below 3
        units. `search_space` is the name of the search space or, for pairs of strategies of several search spaces, the
        data set and scenario.

    Raises:
        UsageError: the space or store does not exist, no run has the metric, or no pair has the baseline.
    """
    from clops_sweep.analysis.report.differences import differences_of

    return differences_of(_state_of(space, _existing(results)), metric, baseline)


@named_arguments
@speaking_python()
def claims(
    space: SearchSpace | Sequence[SearchSpace] | str | PathLike[str],
    results: str | PathLike[str] = "results",
    claims: Sequence[Claim] = (),
    *,
    data_root: str | PathLike[str] | None = None,
    prepared_root: str | PathLike[str] | None = None,
) -> pd.DataFrame:
    """Decide claims about a search space on its finished runs, as `clops-sweep claims` does.

    The sweep may be unfinished: the column `missing` names missing runs.

    Example:
        >>> er, finetune = Side("ER", {"strategy": "er"}), Side("fine-tuning", {"strategy": "finetune"})
        >>> helps = Claim("er_helps", "ER is above fine-tuning", Contrast(er, finetune, "test_auc"))
        >>> verdicts = claims(space, "results", [helps])
        >>> verdicts["verdict"].tolist()
        ['undecided']

    Args:
        space: a search space, several, or the path of a search-space file.
        results: the store, a folder or a URI.
        claims: the claims; by default, the CLAIMS of the search-space file.
        data_root: folder of the data sets as published; by default CLOPS_DATA_ROOT.
        prepared_root: folder of the prepared frames, for claims about signals; by default CLOPS_PREPARED_ROOT, else in
            the user's cache.

    Returns:
        A row for each difference of each claim: `verdict` ("holds", "does not hold" or "undecided"), `difference`, its
        interval (`low`, `high`) and `level`, and n units (`unit`). `where` selects its runs, as a condition for
        `clops-sweep runs`. `changed` names earlier verdicts that differ. For a file, `attrs["seal"]` says whether its
        claims are sealed, and `attrs["history"]` has the verdicts so far. `attrs["in_doubt"]` has a sentence for
        configurations that have not learned a task, one for scores that still rise, and one for decisions that moved
        although the ranking was kept; warnings say the same. See docs/claims.md.

    Raises:
        UsageError: the space or store does not exist, there are no claims, or a claim is invalid.
    """
    from clops_sweep.analysis.report.claims_frame import claims_of
    from clops_sweep.experiment.spaces.space_files import claims_about
    from clops_sweep.planning.state import State

    selection = Selection.of(space)
    if claims:
        selection = replace(selection, claims=claims_about(selection.given, claims))
    if not selection.claims:
        raise UsageError("claims: expected claims=[Claim(...), ...], or the path of a file that defines CLAIMS")
    store = _existing(results)
    return claims_of(State.of(Request(selection, _data(store, data_root, prepared_root), store)))


@named_arguments
@speaking_python()
def seal_claims(
    file: str | PathLike[str],
    results: str | PathLike[str] = "results",
    *,
    data_root: str | PathLike[str] | None = None,
    prepared_root: str | PathLike[str] | None = None,
) -> str:
    """Seal the claims of a search-space file before its first run, as `clops-sweep claims FILE --seal` does.

    Example:
        >>> seal = seal_claims("my_space.py", "new_results")

    Args:
        file: the path of a search-space file that defines CLAIMS. Claims of a file are sealed, because a seal names it.
        results: the store, a folder or a URI.
        data_root: folder of the data sets as published; by default CLOPS_DATA_ROOT.
        prepared_root: folder of the prepared frames; by default CLOPS_PREPARED_ROOT, else in the user's cache.

    Returns:
        The path of the seal.

    Raises:
        UsageError: the file defines no CLAIMS, a run has ended, a seal exists, or `sweep` would refuse the file.
    """
    from clops_sweep.execution.fit import check_fit
    from clops_sweep.planning.claim_seal import seal

    _check_path("file", file)
    _check_path("results", results)
    store = RunStore.named(str(results))
    request = Request(Selection.of(file), _data(store, data_root, prepared_root), store)
    written = seal(request, check_fit)
    for tuned in request.selection.tuned:
        if tuned.splits_fixed:
            warn_user(tuned.splits_fixed)
    return written.path


@named_arguments
@speaking_python()
def read(
    results: str | PathLike[str] = "results",
    table: Literal["runs", "r_matrix", "curves", "instances", "predictions", "intervals", "people"] = "runs",
    run_ids: str | Iterable[str] | None = None,
    columns: str | Iterable[str] | None = None,
    space: SearchSpace | Sequence[SearchSpace] | str | PathLike[str] | None = None,
) -> pd.DataFrame:
    """Return a table of a store with each finished run once, also while a sweep writes to it.

    The column `role` of "runs" tells results from other runs: "reported"; "trial", a run of tuning that only chose a
    configuration; or "pretraining", a run whose model is the encoder of other runs. It is computed, and not in the
    Parquet files.

    Example:
        >>> runs = read("results", "runs", space="my_space.py")
        >>> reported = runs[runs["role"] == "reported"]
        >>> means = reported.groupby("strategy")["test_auc"].mean()

    Args:
        results: the store, a folder or a URI.
        table: name of the table; docs/store.md describes their rows. "intervals" and "people" are computed from
            "predictions": see `clops_sweep.analysis.patient_bootstrap` and `clops_sweep.analysis.per_person`.
        run_ids: one run or several to read; by default all.
        columns: one column or several to read; by default all.
        space: a search space, several, or the path of a search-space file, whose runs are read, of one edition of the
            data: a warning counts those that are left aside. By default all runs of the store, where runs of several
            spaces with one method may differ in settings, and runs of several editions in `prepared_hash`.

    Raises:
        UsageError: the store, table, column or space does not exist, the store cannot be read, or both run ids and a
            space are given.
    """
    if space is not None:
        if run_ids is not None:
            raise UsageError("read: expected run_ids or space, not both")
        run_ids = _runs_of(space, _existing(results))
    known = (*SCHEMAS, "intervals", "people")
    if not isinstance(table, str) or table not in known:
        hint = nearest(table, known) if isinstance(table, str) else ""
        raise UsageError(f"table {shown(table)}: not known{hint}; known: {listed(known)}")
    if table == "intervals" or table == "people":
        return _computed(table, _existing(results), run_ids, columns)
    if table == "runs":
        from clops_sweep.search.roles import runs_with_roles

        return runs_with_roles(_existing(results), run_ids, columns)
    return _existing(results).read(table, run_ids, columns)


def _runs_of(space: SearchSpace | Sequence[SearchSpace] | str | PathLike[str], store: RunStore) -> list[str]:
    """Return the ids of the runs of a store that are of a search space, those of tuning included."""
    from clops_sweep.analysis.tables.scores import run_ids_of

    run_ids, left_aside = run_ids_of(_state_of(space, store))
    if left_aside:
        warn_user(left_aside)
    return run_ids


def _computed(
    table: str, store: RunStore, run_ids: str | Iterable[str] | None, columns: str | Iterable[str] | None
) -> pd.DataFrame:
    """Return a table that is computed from predictions."""
    from clops_sweep.analysis.people import patient_intervals, per_person

    known, compute = {
        "intervals": (patient_intervals.COLUMNS, patient_intervals.intervals),
        "people": (per_person.COLUMNS, per_person.people),
    }[table]
    chosen = known if columns is None else columns
    names = [chosen] if isinstance(chosen, str) else list(chosen)
    for name in names:
        if name not in known:
            raise UsageError(f"table {table!r} has no column {shown(name)}; it has {listed(known)}")
    ids = [run_ids] if isinstance(run_ids, str) else run_ids
    return compute(store, ids)[names]


@named_arguments
@speaking_python()
def load_model(results: str | PathLike[str], run_id: str, task: int | None = None) -> TrainedModel:
    """Load the network of a run, stored by ``--keep models`` or ``sweep(..., keep=["models"])``.

    Example:
        >>> model = load_model("results", "3f2a")
        >>> frames = np.zeros((8, 1, 2500), np.float32)  # [B, channels, samples]
        >>> probabilities = model(model.normalized(frames))  # float32 [B, outputs]

    The file is verified against its SHA-256, and nothing in it is executed. A warning says if the code of a custom
    network has changed since the run.

    Args:
        results: the store, a folder or a URI.
        run_id: id of the run, or an unambiguous prefix.
        task: number of tasks learned; by default the last model kept.

    Raises:
        UsageError: the run or model does not exist, the network or encoder is not declared, or its declaration no
            longer matches the weights.
        DamagedStore: the file was changed.
    """
    from clops_sweep.learning.models.trained_model import model_from
    from clops_sweep.planning.changes import change_of_network

    store = _existing(results)
    whole_id = store.find(run_id)
    model = model_from(store.models.read(whole_id, task), _encoders(store).of_model, f"model of run {whole_id}")
    changed = change_of_network(store, whole_id)
    if changed is not None:
        warn_user(changed)
    return model


@named_arguments
@speaking_python()
def update_report(
    results: str | PathLike[str],
    run_id: str,
    *,
    against: str | None = None,
    folds: bool = False,
    groups: Sequence[str] = (),
    criteria: Criteria | Mapping[str, Any] | str | PathLike[str] | None = None,
    title: str = "",
    data_root: str | PathLike[str] | None = None,
    prepared_root: str | PathLike[str] | None = None,
) -> UpdateReport:
    """Report what changes for which patients when the last model of a run replaces another model.

    Example:
        >>> report = update_report("results", "3f2a", criteria=Criteria(max_flips=0.02))
        >>> may_be_deployed = report.holds
        >>> report = update_report("results", "3f2a", criteria="criteria.toml")
        >>> page = report.html()

    Args:
        results: the store, a folder or a URI. Its runs need predictions (``--keep predictions``).
        run_id: id of the run, or an unambiguous prefix.
        against: id of the run whose last model is replaced. By default, it is the model of the same run before its last
            task, and the instances of earlier tasks are compared. If that run is on other data, such as an earlier
            edition without a new ward, its stored model (``--keep models``) is applied to the test instances of this
            one. People whom it was trained on are left out.
        folds: whether to pool the runs that differ from the run in the fold alone (``axes={"split": folds(5)}``). Each
            person is judged once, by the run that tests them. With `against`, the runs of all folds replace those of
            the other run's settings, fold by fold. Needs the prepared frames.
        groups: columns that define subgroups: those of ``Recordings(..., groups={...})``, or domains.
        criteria: acceptance criteria: ``Criteria(...)``, a dict such as ``{"max_flips": 0.02}``, or a TOML file.
            Without any, ``report.holds`` is None: the update is not judged.
        title: words for the top of the page.
        data_root: folder of the data sets as published; by default CLOPS_DATA_ROOT.
        prepared_root: folder of the prepared frames, which contain the subgroups; by default CLOPS_PREPARED_ROOT, else
            in the user's cache.

    Raises:
        UsageError: the run does not exist or has no predictions, the two runs differ in instances or labels, the other
            run is on other data and its model is not stored, does not fit them or has seen all people, a column or
            class is unknown, a column has more than 50 values, or with `folds` the run has no fold, or a fold
            has no finished run of the same settings, or the other run is one of these folds or has other folds.
    """
    from clops_sweep.analysis.update.criteria import Criteria, criteria_of, read_criteria
    from clops_sweep.analysis.update.report import make_report

    criteria_file = None
    if isinstance(criteria, str | PathLike):
        criteria_file = Path(criteria)
        criteria = read_criteria(criteria_file)
    elif isinstance(criteria, Mapping):
        with prefixed("criteria"):
            criteria = criteria_of(criteria)
    if not isinstance(criteria, Criteria | None):
        raise UsageError(f"criteria = {shown(criteria)}: expected Criteria(...), a dict or the path of a TOML file")
    names = [groups] if isinstance(groups, str) else groups
    if not isinstance(names, Collection) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"groups = {shown(groups)}: expected names of columns")
    store = _existing(results)
    data = _data(store, data_root, prepared_root)
    return make_report(store, run_id, against, [*names], criteria, data, criteria_file, folds=folds, title=title)


@named_arguments
@speaking_python()
def write_report(
    space: SearchSpace | Sequence[SearchSpace] | str | PathLike[str],
    results: str | PathLike[str] = "results",
    folder: str | PathLike[str] | None = None,
    *,
    metrics: str | Sequence[str] = (),
    axes: tuple[str, str] | None = None,
    style: Literal["screen", "journal"] = "screen",
    data_root: str | PathLike[str] | None = None,
    prepared_root: str | PathLike[str] | None = None,
) -> ReportPaths:
    """Write the report of a search space, as `clops-sweep report` does: a page, and its figures and tables as files.

    In a notebook, a call as the last line of a cell shows the page.

    Example:
        >>> report = write_report(space, "results", "report")
        >>> report.index.name
        'index.html'

    Args:
        space: a search space, several, or the path of a search-space file.
        results: the store, a folder or a URI.
        folder: folder of the report, new or with an earlier report; by default `report/NAME` in the store, or
            `report/NAME+DIGEST` if the former has the report of another search-space file.
        metrics: columns of `runs` to show instead of the scenario's headline metrics; the first one ranks runs.
        axes: the two axes of the heatmaps; by default the first two numeric axes.
        style: ``"journal"`` for figures 89 or 183 mm wide.
        data_root: folder of the data sets as published; by default CLOPS_DATA_ROOT.
        prepared_root: folder of the prepared frames, from which tracings are drawn; by default CLOPS_PREPARED_ROOT,
            else in the user's cache.

    Raises:
        UsageError: the space, store, an axis or a metric is unknown, or the folder contains other files.
    """
    from clops_sweep.analysis.report.of_state import report_of
    from clops_sweep.planning.state import State

    if style not in ("screen", "journal"):
        raise UsageError(f"style = {shown(style)}: expected 'screen' or 'journal'")
    if folder is not None:
        _check_path("folder", folder)
    store = _existing(results)
    request = Request(Selection.of(space), _data(store, data_root, prepared_root), store)
    state = State.of(request)
    target = None if folder is None else Path(folder)
    shown_metrics = [metrics] if isinstance(metrics, str) else metrics
    return report_of(state, target, axes=axes, metrics=shown_metrics, journal=style == "journal")


@named_arguments
@speaking_python()
def encode(
    config: RunConfig,
    results: str | PathLike[str] = "results",
    *,
    data_root: str | PathLike[str] | None = None,
    prepared_root: str | PathLike[str] | None = None,
) -> FrameSet:
    """Compute the features of a config's encoder on its data set, unless they are cached, and open them.

    A launch does the same. `ContinualRun` runs a config on them. For a config with `start_from`, the frames carry the
    stored model that the run starts from; without an encoder, they are the signals.

    Example:
        >>> config = RunConfig(dataset="synthetic", encoder="my_encoder", network="linear")
        >>> frames = encode(config, "results")
        >>> result = ContinualRun(config, frames).run()

    Args:
        config: config with the data set, its settings, and the encoder.
        results: the store that holds the model of ``encoder="run:RUN_ID"`` or ``start_from="run:RUN_ID"``.
        data_root: folder of the data sets as published; by default CLOPS_DATA_ROOT.
        prepared_root: folder of the prepared frames; by default CLOPS_PREPARED_ROOT, else in the user's cache.

    Returns:
        The features as frames [1, F] or [tokens, F], with the labels, patients and split of the data set.

    Raises:
        UsageError: the config names neither encoder nor `start_from`, its data cannot be prepared or adapted, its
            weights are missing, do not match or would execute code, or the module is not a valid encoder.
    """
    if not isinstance(config.encoder, str) and config.start_from is None:
        raise UsageError(f"encoder = {shown(config.encoder)}: expected the name of an encoder, or run:RUN_ID")
    data = _data(RunStore.named(str(results)), data_root, prepared_root)
    data.prepare([config.data_key])
    return data.frames(config.data_key)


@named_arguments
@speaking_python()
def delete(results: str | PathLike[str], where: str) -> int:
    """Delete the runs of a store that meet a condition, from all its tables.

    Each run is deleted from all tables or stays whole: after a kill, repeat the call. A sweep that requests deleted
    runs computes them again.

    Example:
        >>> delete("results", "strategy == 'finetune'")
        1

    Args:
        results: the store, a folder or a URI.
        where: a condition on the columns of `runs`, such as ``"strategy == 'clops' and status == 'failed'"``.

    Returns:
        The number of deleted runs.

    Raises:
        UsageError: no run meets the condition, it names an unknown column, or the store cannot be written to.
    """
    from clops_sweep.store.upkeep import delete_runs, matching

    store = _existing(results)
    return delete_runs(store, matching(store, where))


@named_arguments
@speaking_python()
def merge(results: str | PathLike[str], other: str | PathLike[str]) -> int:
    """Copy the runs that another store has and this one lacks, with all their tables.

    After a kill, repeat the call. The other store is not changed; either may be a folder or a URI.

    Example:
        >>> merge("all_results", "results")
        1

    Args:
        results: the store to add to; created if missing.
        other: the store to copy from.

    Returns:
        The number of copied runs.

    Raises:
        UsageError: a run has different numbers in the two stores, or a store cannot be read or written to.
    """
    from clops_sweep.store.merging import merge_runs

    _check_path("results", results)
    return merge_runs(RunStore.named(str(results)), _existing(other, "other"))


def _state_of(space: SearchSpace | Sequence[SearchSpace] | str | PathLike[str], store: RunStore) -> State:
    """Return the state of search spaces in a store, on the data that are prepared on this machine."""
    from clops_sweep.planning.state import State

    return State.of(Request(Selection.of(space), _data(store, None, None), store))


def _existing(results: object, name: str = "results") -> RunStore:
    _check_path(name, results)
    store = RunStore.named(str(results))
    store.files.check_is_there()
    return store


def _parsed(name: str, value: object, read: Callable[[object], Any]) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise UsageError(f"{name} = {shown(value)}: {error}") from None


def _check_path(name: str, path: object) -> None:
    if not isinstance(path, str | PathLike) or not str(path).strip() or "\0" in str(path):
        raise UsageError(f"{name} = {shown(path)}: expected a path")


def _encoders(store: RunStore, data_root: str | PathLike[str] | None = None) -> Encoders:
    from clops_sweep.learning.encoders.encoders import Encoders

    return Encoders(store.models.read, data_root)


def _data(
    store: RunStore, data_root: str | PathLike[str] | None, prepared_root: str | PathLike[str] | None
) -> PreparedData:
    return PreparedData.found(prepared_root, data_root, _encoders(store, data_root))
