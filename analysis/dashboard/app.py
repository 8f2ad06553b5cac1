"""The Flask application. Only this module and `server` need Flask."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pandas as pd

from clops_sweep.errors import UsageError, one_line, reason
from clops_sweep.experiment.columns import config_columns
from clops_sweep.store.launch_folders import plugin_files_to_name, prepared_root_to_name
from clops_sweep.store.launches import UnderWay
from clops_sweep.store.reading import rerun_command, store_command
from clops_sweep.store.run_logs import EpochScores

from ..as_stored import stored_value
from ..axis_names import axis_title
from ..collect import Experiment, computed_on, label_text
from ..drawing.pictures import Picture, sketch
from ..failures import failures
from ..figures.curves import draw_learning_curves, learning_curves
from ..formats import DASH, duration, plural
from ..metrics import metric_named
from ..report.page import rendered
from ..report.planned import PlannedSection
from .charts import MOST_CURVES, MOST_POINTS, Choice, curves, history, scatter
from .drawings import Drawings, on_screen
from .overview import counts, newest, progress, statuses
from .run_log import RunLog, run_log
from .runs import RunsTable, run_names, runs_table
from .snapshot import FollowedStore, Snapshot

NOT_INSTALLED = (
    "the dashboard needs Flask, Plotly and waitress; install them with: pip install 'clops-sweep[dashboard]'"
)
PAGES = {"": "Overview", "runs": "Runs", "compare": "Compare", "run": "Run", "report": "Report"}
"""Pages: path to title, in navigation order."""

Context = dict[str, Any]
"""Variables of a template."""

_STATUSES = ("finished", "running", "failed", "missing")
_BEST = 5
"""Runs whose curves are shown before a reader picks any."""

_MOST_LABELS = 100
"""Most labels of a column to choose from."""

_DRAWING = 0.5
"""Seconds between requests of a browser that waits for figures."""


class Dashboard:
    """The pages of a store. Their addresses hold everything that a reader has chosen.

    Args:
        followed: the store.
        notices: sentences for the overview.
    """

    def __init__(self, followed: FollowedStore, notices: Sequence[str] = ()) -> None:
        self._followed = followed
        self._notices = tuple(notices)
        self._drawings = Drawings()
        self._started = f"{time.time():.0f}"  # pages of an earlier server are not current
        self._contexts: dict[str, Callable[[Snapshot, Mapping[str, str]], Context]] = {
            "": self._overview,
            "runs": self._runs,
            "compare": self._compare,
            "run": self._run,
            "report": self._report,
        }

    def page(self, path: str, given: Mapping[str, str], known: str = "") -> str | None:
        """Return a page as HTML; None if the browser that asks again has it already.

        Args:
            path: one of `PAGES`.
            given: the parameters of the address.
            known: the version of the page that the browser has; the store is read again for it.
        """
        snapshot = self._followed.refresh() if known else self._followed.snapshot
        shown: Context = {"name": self._followed.store.files.shown, "seconds": self._followed.seconds, "path": path}
        shown |= {"pages": PAGES, "problem": snapshot.problem, "experiment": "", "experiments": list(snapshot.sections)}
        shown["version"] = f"{self._started}.{snapshot.version}.{snapshot.epochs}.{snapshot.problem}"
        template = PAGES[path].lower()
        try:
            if path == "report" and (section := _experiment(snapshot, given)) is not None:
                drawing = self._drawings.of(section.experiment.name, section)
                shown["version"] = f"{self._started}.{drawing.version}.{snapshot.problem}"
            if shown["version"] == known:
                return None
            shown |= self._contexts[path](snapshot, given)
        except (UsageError, OSError) as error:
            template, shown["notice"] = "notice", one_line(error)
        except Exception as error:  # a store is untrusted input, and an error must not leave the previous page in place
            logging.getLogger(__name__).exception("the page %r", path)
            template, shown["notice"] = "notice", f"This page cannot be shown: {reason(error)}"
        return rendered(f"dashboard/templates/{template}.html.jinja", **_HELPERS, **shown)

    def close(self) -> None:
        """Stop drawing."""
        self._drawings.close()

    def csv(self, given: Mapping[str, str]) -> str:
        """Return the table of runs of an address, all rows of it."""
        snapshot = self._followed.snapshot
        section = _experiment(snapshot, given)
        return "" if section is None else _table(section, snapshot, given).csv()

    def _overview(self, snapshot: Snapshot, given: Mapping[str, str]) -> Context:
        found = {name: failures(it.experiment.runs) for name, it in snapshot.sections.items()}
        return {
            "rows": progress(snapshot),
            "notices": self._notices,
            "counts": [f"{count:,} {it}" for it in _STATUSES if (count := counts(snapshot).get(it, 0))],
            "under_way": [_on_its_way(snapshot, it) for it in snapshot.under_way],
            "failed": [(name, it) for name, reasons in found.items() for it in reasons],
        }

    def _runs(self, snapshot: Snapshot, given: Mapping[str, str]) -> Context:
        section = _experiment(snapshot, given)
        if section is None:
            raise UsageError("This store holds no run yet.")
        experiment, table = section.experiment, _table(section, snapshot, given)
        usual = (*(f"test_{name}" if experiment.on_test else name for name in experiment.headline), "seconds")
        columns = [metric_named(name) for name in usual if name in table.measured]
        at = given.get("at", "")
        rows, at_page, pages = table.page(int(at) if at.isascii() and at.isdigit() and len(at) < 9 else 1)
        of_status = statuses(experiment.runs, snapshot.running).value_counts()
        return {
            "experiment": experiment.name,
            "columns": columns,
            "whose": computed_on([experiment], [metric.column for metric in columns]),
            "labels": table.labels,
            "rows": [
                {
                    "name": name,
                    "row": row,
                    "values": [_number(metric.text, row[metric.column]) for metric in columns],
                    "labels": [label_text(stored_value(row[label])) for label in table.labels],
                    "ended": _time(row["ended"].timestamp()) if not pd.isna(row["ended"]) else DASH,
                }
                for name, row in zip(
                    run_names(experiment, experiment.runs.iloc[rows.index]), rows.to_dict("records"), strict=True
                )
            ],
            "total": len(table.frame),
            "statuses": {it: int(of_status[it]) for it in _STATUSES if it in of_status},
            "sort": given.get("sort", ""),
            "status": given.get("status", ""),
            "at": at_page,
            "last": pages,
        }

    def _compare(self, snapshot: Snapshot, given: Mapping[str, str]) -> Context:
        section = _experiment(snapshot, given)
        if section is None:
            raise UsageError("This store holds no run yet.")
        experiment = section.experiment
        table = runs_table(experiment, snapshot.running)
        choice = Choice.of(given, table, experiment)
        shown = choice.of_table(table)
        columns = [*table.labels, *table.measured]
        names = run_names(experiment, experiment.runs.iloc[shown.index])
        picked = [run for run in given.get("runs", "").split(",") if run in set(table.frame["run_id"]) - {""}]
        curves_of = _curves_shown(experiment, shown, choice, picked)
        rows = self._followed.store.read("curves", list(curves_of)) if curves_of else pd.DataFrame()
        tasks = sorted(map(str, rows["task"].unique())) if len(rows) else []
        task = given.get("task", "") if given.get("task") in tasks else ""
        split = "test" if experiment.on_test else "validation"
        has_curves = len(rows) > 0 and experiment.measure in rows
        filters = [(name, axis_title(name), _values_of(table, name)) for name in table.labels]
        return {
            "experiment": experiment.name,
            "choice": choice,
            "columns": [
                (name, metric_named(name).plain if name in table.measured else axis_title(name)) for name in columns
            ],
            "colours": [("none", "none"), *((name, axis_title(name)) for name in table.labels)],
            "filters": [it for it in filters if 2 < len(it[2]) <= _MOST_LABELS],
            "total": len(table.frame),
            "shown": len(shown),
            "most_points": MOST_POINTS,
            "whose": computed_on([experiment], [it for it in (choice.x, choice.y) if it in table.measured]),
            "scatter": json.dumps(scatter(shown, names, choice, picked)),
            "scatter_alt": f"{plural(len(shown), 'run')}: {choice.y} against {choice.x}",
            "picked": picked,
            "cleared": {name: value for name, value in given.items() if name != "runs"},
            "curves_of": curves_of,
            "curves": json.dumps(curves(rows, curves_of, experiment.measure, split, task)) if has_curves else "",
            "curves_alt": f"{experiment.measure} of {plural(len(curves_of), 'run')} after every epoch",
            "tasks": [("", "mean over tasks"), *((it, it) for it in tasks)],
            "task": task,
            "histories": [json.dumps(it) for it in history(section.study)] if section.study is not None else [],
        }

    def _run(self, snapshot: Snapshot, given: Mapping[str, str]) -> Context:
        run = given.get("id") or _newest_run(snapshot)
        if not run:
            raise UsageError("No run has finished yet.")
        under_way = next((it for it in snapshot.under_way if run == it.run_id), None)
        row = snapshot.runs.loc[run].to_dict() if run in snapshot.runs.index else {}
        name, section = _home(snapshot, run, under_way.name if under_way else run)
        settings = {it: stored_value(row[it]) for it in config_columns(map(str, row)) if it in row and it != "run_id"}
        measured = section.experiment.measured if section is not None else ()
        values = {metric_named(it): row[it] for it in measured if it in row}
        store = self._followed.store
        results = store.files.anywhere
        error = row.get("error")
        log = run_log(store, run)
        rerun = ""
        if row:
            files = plugin_files_to_name(store, row.get("plugins"), anywhere=True)
            rerun = rerun_command(run, results, plugins=files, prepared_root=prepared_root_to_name(store))
        return {
            "experiment": section.experiment.name if section is not None else "",
            "run": run,
            "run_name": name,
            "status": row.get("status") or ("running" if under_way else "missing"),
            "under_way": _on_its_way(snapshot, under_way) if under_way else None,
            "settings": {it: label_text(value) for it, value in settings.items() if value is not None},
            "measured": {m.plain: m.text(float(it)) for m, it in values.items() if it is not None and it == it},
            "error": error if isinstance(error, str) else "",
            "curves": self._curves(section, run, row.get("status") == "finished", log),
            "log": log,
            "logs": store_command(results, "logs", run),
            "rerun": rerun,
        }

    def _curves(self, section: PlannedSection | None, run: str, is_stored: bool, log: RunLog) -> Picture | None:
        """Return the learning curves of a run: those in the store, or until then those in its log."""
        if is_stored and section is not None:
            rows, experiment = self._followed.store.read("curves", [run]), section.experiment
            measure, cell = experiment.measure, experiment.runs["cell"][experiment.runs["run_id"] == run].iloc[0]
            rows = section.titles.named(rows, experiment, cell)
        else:
            measure = log.scores[-1].measure if log.scores else ""
            rows = _logged_curves(run, log.scores)
        if rows.empty:
            return None
        split = "test" if is_stored and section is not None and section.experiment.on_test else "validation"
        record = [learning_curves(rows, "", measure, split)]
        return on_screen(sketch(draw_learning_curves, record, "run-curves", "Learning curves", ""))

    def _report(self, snapshot: Snapshot, given: Mapping[str, str]) -> Context:
        section = _experiment(snapshot, given)
        if section is None:
            raise UsageError("This store holds no run yet.")
        drawing = self._drawings.of(section.experiment.name, section)
        is_first = drawing.section is None and not drawing.problem
        return {
            "experiment": section.experiment.name,
            "section": drawing.html,
            "figures": drawing.figures,
            "drawing_problem": drawing.problem,
            "seconds": _DRAWING if is_first else self._followed.seconds,
        }


def make_app(dashboard: Dashboard) -> Any:
    """Return the application: the pages, `/runs.csv`, and the files of `/assets` with Plotly.js.

    A browser asks for its page again with the version that it shows, and gets 304 if nothing has changed.

    Raises:
        UsageError: Flask or Plotly is not installed.
    """
    try:
        from flask import Flask, Response, request
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise UsageError(NOT_INSTALLED) from None
    app = Flask(__name__, static_folder=str(Path(__file__).with_name("assets")), static_url_path="/assets")

    def page(path: str) -> Response:
        given = {name: ",".join(request.args.getlist(name)) for name in request.args}
        html = dashboard.page(path, given, request.headers.get("If-None-Match", ""))
        return Response(status=304) if html is None else Response(html, mimetype="text/html")

    def of_report(name: str) -> Response:
        return Response(
            Path(__file__).parents[1].joinpath("report", name).read_bytes(),
            mimetype="text/css" if name.endswith("css") else "text/javascript",
        )

    for path in PAGES:
        app.add_url_rule(f"/{path}", f"page {path}", lambda path=path: page(path))
    for name in ("page.css", "page.js"):
        app.add_url_rule(f"/assets/{name}", name, lambda name=name: of_report(name))

    def plotly() -> Response:
        return Response(get_plotlyjs(), mimetype="text/javascript", headers={"Cache-Control": "max-age=86400"})

    app.add_url_rule("/assets/plotly.js", "plotly", plotly)
    as_file = {"Content-Disposition": 'attachment; filename="runs.csv"'}
    app.add_url_rule(
        "/runs.csv", "csv", lambda: Response(dashboard.csv(request.args), mimetype="text/csv", headers=as_file)
    )
    return app


def _logged_curves(run: str, scores: Sequence[EpochScores]) -> pd.DataFrame:
    """Return the scores in the log of a run as rows of the table `curves`."""
    rows = []
    for after in scores:
        for task, value in after.values.items():
            rows.append(
                {
                    "run_id": run,
                    "epoch": after.progress.step,
                    "training_task": after.progress.task_name,
                    "task": task,
                    after.measure: value,
                }
            )
    return pd.DataFrame(rows)


def _curves_shown(experiment: Experiment, shown: pd.DataFrame, choice: Choice, picked: Sequence[str]) -> dict[str, str]:
    """Return the runs whose curves are drawn, id to name: those picked, else the best five along the vertical axis."""
    if picked:
        rows = experiment.runs[experiment.runs["run_id"].isin(picked[:MOST_CURVES])]
    else:
        lower_is_better = choice.y not in experiment.measured or metric_named(choice.y).better == "lower"
        best = shown.sort_values(choice.y, ascending=lower_is_better, kind="stable")
        rows = experiment.runs.loc[best.index[:_BEST]]
    rows = rows.drop_duplicates("run_id")
    return dict(zip(rows["run_id"].tolist(), run_names(experiment, rows), strict=True))


def _values_of(table: RunsTable, name: str) -> list[tuple[str, str]]:
    """Return the labels of a column to choose from, "all" first."""
    labels = dict.fromkeys(map(label_text, table.frame[name].dropna().tolist()))
    return [("", "all"), *((label, label) for label in labels)]


def _experiment(snapshot: Snapshot, given: Mapping[str, str]) -> PlannedSection | None:
    """Return the chosen experiment, else the one whose run ended last; None in an empty store."""
    chosen = given.get("experiment", "")
    if chosen not in snapshot.sections and snapshot.sections:
        chosen = newest(snapshot)
    return snapshot.sections.get(chosen)


def _table(section: PlannedSection, snapshot: Snapshot, given: Mapping[str, str]) -> RunsTable:
    sort, status = given.get("sort", ""), given.get("status", "")
    return runs_table(section.experiment, snapshot.running, sort=sort, status=status)


def _home(snapshot: Snapshot, run: str, otherwise: str) -> tuple[str, PlannedSection | None]:
    """Return the name of a run, and the section of its experiment."""
    for section in snapshot.sections.values():
        runs = section.experiment.runs
        if (found := runs[runs["run_id"] == run]).size:
            return run_names(section.experiment, found)[0], section
    return otherwise, None


def _newest_run(snapshot: Snapshot) -> str:
    """Return the run to show first: a running one, else the last that failed, else the last that ended."""
    if snapshot.under_way:
        return snapshot.under_way[0].run_id
    failed = snapshot.runs[snapshot.runs["status"] == "failed"]
    among = failed if len(failed) else snapshot.runs
    return str(among.sort_values("started_at", na_position="first")["run_id"].iloc[-1]) if len(among) else ""


def _on_its_way(snapshot: Snapshot, running: UnderWay) -> Context:
    """Describe a running run, by its name in the experiment."""
    name, section = _home(snapshot, running.run_id, running.name)
    described: Context = {
        "name": name,
        "experiment": DASH if section is None else section.experiment.name,
        "run": running.run_id,
        "task": "starting",
        "epoch": DASH,
        "share": 0.0,
        "left": _left(running.ends_at - time.time()) if running.ends_at else DASH,
    }
    progress = running.progress
    if progress is not None:
        described["task"] = f"{progress.task} of {progress.tasks}"
        described["epoch"] = f"{progress.epoch} of {progress.epochs}"
        described["share"] = progress.share
    return described


def _left(seconds: float) -> str:
    """Format a time until an expected end, which may have passed."""
    return duration(seconds) if seconds > 0 else "longer than expected"


def _number(text: Callable[[float], str], value: float) -> str:
    return text(value) if math.isfinite(value) else DASH


def _time(seconds: float) -> str:
    """Format a time given in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M") if math.isfinite(seconds) else DASH


_HELPERS: Context = {
    "DASH": DASH,
    "axis_title": axis_title,
    "one_line": one_line,
    "plural": plural,
    "query": lambda **given: f"?{urlencode({name: it for name, it in given.items() if it})}",
    "time_text": _time,
}
