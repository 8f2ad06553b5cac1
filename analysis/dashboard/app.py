"""The Flask application. Only this module and `server` need Flask."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pandas as pd

from clops_sweep.data.prepared.commands import default_prepared_root
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError, listed, one_line, reason, shown
from clops_sweep.experiment.axis_names import axis_title
from clops_sweep.store.rows import reason_of

from ..as_stored import stored_value
from ..collect import computed_on, label_text
from ..failures import Failure, failures
from ..formats import DASH, mean_text, plural
from ..leading import names_of_tuned, what_was_tuned
from ..metrics import Metric, metric_named
from ..report.page import as_command, rendered
from ..report.planned import PlannedSection
from ..tables.by_task import ScoresByTask, scores_by_task, signed_text
from .compare import compare_page
from .drawings import Drawings
from .method_charts import method_charts
from .methods import method_tables, methods_by_experiment
from .overview import counts, lines, most_telling, on_edge, progress, replaced, searches, statuses
from .run_page import cell_of, newest_run, on_its_way, reports_in_words, run_named, run_page, run_to_report
from .runs import RunsTable, filters, kept_labels, run_names, runs_table, splits_of_rows
from .snapshot import FollowedStore, Snapshot, log_fault
from .trained import Doubts, best_by_experiment
from .update_reports import POLICY, mark_of_reports, written_page

NOT_INSTALLED = (
    "the dashboard needs Flask, Plotly and waitress; install them with: pip install 'clops-sweep[dashboard]'"
)
PAGES = {"": "Overview", "methods": "Methods", "runs": "Runs", "compare": "Compare", "run": "Run", "report": "Report"}
"""Pages: path to title, in navigation order."""

READ_AT = "Store-Read-At"
"""Header of every page: when the store was last read, in seconds since 1970."""

Context = dict[str, Any]
"""Variables of a template."""

_STATUSES = ("finished", "running", "failed", "missing")
_MOST_SECTIONS = 8
"""Most experiments that each have a section on the overview; of more, those of one method have only their line."""

_DRAWING = 0.5
"""Seconds between requests of a browser that waits for figures."""


class UnknownAddress(UsageError):
    """The address names a run or an experiment that the store does not have."""


class Dashboard:
    """The pages of a store. Their addresses hold everything that a reader has chosen.

    Args:
        followed: the store.
        notices: sentences for the overview.
        files: the search-space files that commands name; without any, they name "SPACE.py".
        data: the prepared data sets; without them, commands of update reports have no subgroups and no folds.
        claims: returns the verdicts on the claims of the search-space files now, a sentence each.
        changes: returns what changed since the runs of the search-space files were computed, a sentence each.
    """

    def __init__(
        self,
        followed: FollowedStore,
        notices: Sequence[str] = (),
        files: Sequence[str] = (),
        data: PreparedData | None = None,
        claims: Callable[[], Sequence[str]] = tuple,
        changes: Callable[[], Sequence[str]] = tuple,
        edited: Callable[[], str] = str,
    ) -> None:
        self._followed = followed
        self._edited = edited
        self._data = data
        self._claims = claims
        self._changes = changes
        self._files = tuple(files) or ("SPACE.py",)
        self._notices = tuple(notices)
        self._drawings = Drawings()
        self._doubts = Doubts(followed.store)
        self._started = f"{time.time():.0f}"  # pages of an earlier server are not current
        self._contexts: dict[str, Callable[[Snapshot, Mapping[str, str]], Context]] = {
            "": self._overview,
            "methods": self._methods,
            "runs": self._runs,
            "compare": self._compare,
            "run": self._run,
            "report": self._report,
        }

    @property
    def read_at(self) -> float:
        """When the store was last read, in seconds since 1970."""
        return self._followed.read_at

    def page(self, path: str, given: Mapping[str, str], known: str = "") -> str | None:
        """Return a page as HTML; None if the browser that asks again has it already. See `answer`."""
        return self.answer(path, given, known)[0]

    def answer(self, path: str, given: Mapping[str, str], known: str = "") -> tuple[str | None, int]:
        """Return a page as HTML, None if the browser that asks again has it already, and the HTTP status.

        Args:
            path: one of `PAGES`.
            given: the parameters of the address.
            known: the version of the page that the browser has; the store is read again for it. For a page that is
                opened, it is read again if no page was open for some time.
        """
        snapshot = self._followed.refresh() if known else self._followed.current()
        content = self._of_all_pages(snapshot, path, given)
        status = 200
        try:
            if path == "report" and (section := _experiment(snapshot, given)) is not None:
                drawing = self._drawings.of(section.experiment.name, section)
                content["version"] = f"{self._started}.{drawing.version}.{snapshot.problem}.{len(content['edited'])}"
            if content["version"] == known:
                return None, 304
            return _html(PAGES[path].lower(), content | self._contexts[path](snapshot, given)), status
        except UnknownAddress as error:
            notice, status = one_line(error), 404
        except (UsageError, OSError) as error:
            notice = one_line(error)
        except Exception as error:  # a store is untrusted input, and an error must not leave the previous page in place
            notice = f"This page cannot be shown: {reason(error)}"
            log_fault(f"the page {PAGES[path]}", error)
        return _html("notice", content | {"notice": notice}), status

    def _of_all_pages(self, snapshot: Snapshot, path: str, given: Mapping[str, str]) -> Context:
        """Return the variables that every page has."""
        experiments: list[str] = []
        tunings: list[str] = []
        for name, section in snapshot.sections.items():
            names = tunings if section.experiment.is_tuning else experiments
            names.append(name)
        spaces = names_of_tuned(section.experiment for section in snapshot.sections.values())
        edited = self._edited()
        state = f"{snapshot.version}.{snapshot.epochs}.{self._reports()}.{snapshot.problem}.{len(edited)}"
        return {
            "name": self._followed.store.files.shown,
            "seconds": self._followed.seconds,
            "path": path,
            "filtered": {name: label for name, label in given.items() if name.startswith("only-")},
            "pages": PAGES,
            "problem": snapshot.problem,
            "edited": edited,
            "experiment": "",
            "experiments": experiments,
            "tunings": tunings,
            "titles_of_tunings": {name: what_was_tuned(name, spaces) for name in tunings},
            "read_at": f"{self.read_at:.0f}",
            "version": f"{self._started}.{state}",
        }

    def _reports(self) -> str:
        """Return a text that changes when an update report is written."""
        mark = repr(mark_of_reports(self._followed.store))
        return hashlib.sha256(mark.encode("utf-8", "backslashreplace")).hexdigest()[:8]

    def close(self) -> None:
        """Stop drawing."""
        self._drawings.close()

    def csv(self, given: Mapping[str, str]) -> str:
        """Return the table of runs of an address, all rows of it."""
        snapshot = self._followed.snapshot
        section = _experiment(snapshot, given)
        return "" if section is None else _table(section, snapshot, given).csv()

    def update_report(self, name: str) -> bytes | None:
        """Return an update report that lies in the store, by its file name; None without one."""
        return written_page(self._followed.store, name)

    def _overview(self, snapshot: Snapshot, given: Mapping[str, str]) -> Context:
        found = counts(snapshot)
        rows = progress(snapshot)
        results = [row for row in rows if not row.is_tuning]
        requested = [row for row in results if row.is_requested]
        methods = snapshot.once("methods by experiment", methods_by_experiment)
        tables = snapshot.once("methods", method_tables)
        charts, more_charts = method_charts(tables, [row.name for row in requested or results])
        sections = []
        for name, of_experiment in methods.items():
            count = sum(len(table.rows) for table in of_experiment)
            if len(results) <= _MOST_SECTIONS or count > 1:
                sections.append(name)
        return {
            "results": requested or results,
            "others": [row for row in results if not row.is_requested] if requested else [],
            "tunings": [row for row in rows if row.is_tuning],
            "methods": methods,
            "method_charts": charts,
            "more_charts": more_charts,
            "sections": sections,
            "searches": searches(snapshot),
            "on_edge": on_edge(snapshot),
            "notices": (*self._notices, *self._said_of_runs(snapshot)),
            "claims": snapshot.once("claims", lambda _: self._claims()),
            "in_doubt": self._doubts.of([row.name for row in requested or results], snapshot),
            "by_task": snapshot.once("by task", self._by_task),
            "update_reports": reports_in_words(snapshot, self._followed.store),
            "run_to_report": snapshot.once("run to report", lambda _: run_to_report(snapshot, self._followed.store)),
            "counts": [f"{found[status]:,} {status}" for status in _STATUSES if found.get(status)],
            "under_way": [on_its_way(snapshot, it) for it in snapshot.under_way],
            "failed": snapshot.once("failures", _failures),
            "command": self._launch(),
            "retry": self._launch("--retry", "failed"),
        }

    def _launch(self, *options: str) -> str:
        """Return the command that launches the files of the dashboard."""
        words = [*self._files, *options]
        if self._data is not None and self._data.root != default_prepared_root():
            words += ["--prepared-root", str(self._data.root)]
        return self._followed.store.command(*words)

    def _said_of_runs(self, snapshot: Snapshot) -> list[str]:
        """Return what changed since the runs were computed, and why runs are missing although there are others."""
        sentences = []
        for change in snapshot.once("changes", lambda _: self._changes()):
            sentences.append(f"{change[0].upper()}{change[1:]}.")
        return [*sentences, *replaced(snapshot)]

    def _by_task(self, snapshot: Snapshot) -> dict[str, ScoresByTask]:
        """Return the test scores by task of each experiment that reports results and whose tasks are no classes."""
        scores = {}
        for name, best in snapshot.once("best", best_by_experiment).items():
            section = snapshot.sections[name]
            experiment = section.experiment
            with suppress(UsageError):
                cells = [row.cell for row in best]
                titles = section.titles.of(experiment, cells[0]) if cells else {}
                of_tasks = scores_by_task(experiment, cells, self._followed.store, titles)
                if of_tasks is not None:
                    scores[name] = of_tasks
        return scores

    def _methods(self, snapshot: Snapshot, given: Mapping[str, str]) -> Context:
        _, differs = snapshot.once("lines", lines)
        return {"tables_of_methods": snapshot.once("methods", method_tables), "differs": differs}

    def _runs(self, snapshot: Snapshot, given: Mapping[str, str]) -> Context:
        section = _chosen(snapshot, given)
        experiment = section.experiment
        table = _table(section, snapshot, given)
        every = runs_table(experiment, snapshot.running)
        keep = kept_labels(given, every)
        prefix = "test_" if experiment.on_test else ""
        usual = [f"{prefix}{name}" for name in experiment.headline]
        columns = [metric_named(name) for name in (*usual, "seconds") if name in table.measured]
        labels = [name for name in table.labels if name in every.varied or name == "seed"]
        rows, at_page, pages = table.page(_page_number(given.get("at", "")))
        of_page = experiment.runs.iloc[rows.index]
        names = run_names(experiment, of_page)
        reasons = _reasons(of_page)
        shown_rows = []
        for name, row, reason_of_run in zip(names, rows.to_dict("records"), reasons, strict=True):
            texts = _row(name, row, columns, labels)
            shown_rows.append(texts | {"reason": reason_of_run})
        groups: Sequence[str] = []
        if experiment.is_tuning and not given.get("sort"):
            groups = splits_of_rows(experiment, of_page)
        of_status = statuses(experiment.runs, snapshot.running).value_counts()
        sortable = [(metric.column, metric.plain) for metric in columns]
        sortable.append(("status", "status"))
        sortable += [(name, axis_title(name)) for name in labels]
        sortable.append(("ended", "end"))
        return {
            "experiment": experiment.name,
            "is_tuning": experiment.is_tuning,
            "columns": columns,
            "sortable": sortable,
            "whose": computed_on([experiment], [metric.column for metric in columns]),
            "labels": labels,
            "filters": filters(every),
            "keep": keep,
            "kept": {f"only-{name}": label for name, label in keep.items()},
            "rows": shown_rows,
            "groups": groups,
            "total": len(table.frame),
            "statuses": {status: int(of_status[status]) for status in _STATUSES if status in of_status},
            "address": urlencode({name: value for name, value in given.items() if value}),
            "sort": given.get("sort", ""),
            "status": given.get("status", ""),
            "at": at_page,
            "last": pages,
        }

    def _compare(self, snapshot: Snapshot, given: Mapping[str, str]) -> Context:
        section = _chosen(snapshot, given)
        table = runs_table(section.experiment, snapshot.running)
        methods = snapshot.once("methods by experiment", methods_by_experiment)
        of_experiment = methods.get(section.experiment.name, [])
        in_doubt = self._doubts.of_experiment(section.experiment.name, snapshot)
        page = compare_page(section, table, self._followed.store, given)
        return page | {"tables_of_methods": of_experiment, "in_doubt": in_doubt}

    def _run(self, snapshot: Snapshot, given: Mapping[str, str]) -> Context:
        asked = given.get("id", "")
        run = run_named(asked, snapshot) if asked else newest_run(snapshot)
        if not run and asked:
            raise UnknownAddress(f"No run, or several runs, of this store have an id that begins with {shown(asked)}.")
        if not run:
            raise UsageError("No run has finished yet.")
        back = dict(parse_qsl(given.get("back", "")))
        page = run_page(run, snapshot, self._followed.store, self._data, self._files)
        in_doubt: list[str] = []
        if page["status"] == "finished" and page["experiment"] and not page["is_tuning"]:
            experiment = snapshot.sections[page["experiment"]].experiment
            in_doubt = self._doubts.of_configuration(experiment.name, cell_of(experiment, run), snapshot)
        return page | {"back": back, "in_doubt": in_doubt}

    def _report(self, snapshot: Snapshot, given: Mapping[str, str]) -> Context:
        section = _chosen(snapshot, given)
        drawing = self._drawings.of(section.experiment.name, section)
        is_first = drawing.section is None and not drawing.problem
        return {
            "experiment": section.experiment.name,
            "in_doubt": self._doubts.of_experiment(section.experiment.name, snapshot),
            "section": drawing.shown(),
            "figures": drawing.figures,
            "progress": "" if drawing.problem else drawing.progress,
            "drawing_problem": drawing.problem,
            "seconds": _DRAWING if is_first else self._followed.seconds,
        }


def make_app(dashboard: Dashboard) -> Any:
    """Return the application: pages, `/runs.csv`, update reports, and the files of `/assets` with Plotly.js.

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
        known = request.headers.get("If-None-Match", "")
        html, status = dashboard.answer(path, given, known)
        headers = {READ_AT: f"{dashboard.read_at:.0f}"}
        mimetype = None if html is None else "text/html"
        return Response(html, status, headers=headers, mimetype=mimetype)

    def of_report(name: str) -> Response:
        file = Path(__file__).parents[1] / "report" / name
        mimetype = "text/css" if name.endswith("css") else "text/javascript"
        return Response(file.read_bytes(), mimetype=mimetype)

    for path in PAGES:
        app.add_url_rule(f"/{path}", f"page {path}", lambda path=path: page(path))
    for name in ("page.css", "page.js"):
        app.add_url_rule(f"/assets/{name}", name, lambda name=name: of_report(name))

    def plotly() -> Response:
        return Response(get_plotlyjs(), mimetype="text/javascript", headers={"Cache-Control": "max-age=86400"})

    app.add_url_rule("/assets/plotly.js", "plotly", plotly)
    as_file = {"Content-Disposition": 'attachment; filename="runs.csv"'}

    def csv() -> Response:
        try:
            text = dashboard.csv(request.args)
        except UnknownAddress as error:
            return Response(one_line(error), 404, mimetype="text/plain")
        return Response(text, mimetype="text/csv", headers=as_file)

    app.add_url_rule("/runs.csv", "csv", csv)

    def update_report(name: str) -> Response:
        written = dashboard.update_report(name)
        if written is None:
            return Response(f"{name}: this store has no such update report", 404, mimetype="text/plain")
        return Response(written, headers={"Content-Security-Policy": POLICY}, mimetype="text/html")

    app.add_url_rule("/update-report/<name>", "update report", update_report)
    return app


def _html(template: str, content: Context) -> str:
    """Return a page as HTML."""
    return rendered(f"dashboard/templates/{template}.html.jinja", **_HELPERS, **content)


def _experiment(snapshot: Snapshot, given: Mapping[str, str]) -> PlannedSection | None:
    """Return the chosen experiment; without a choice, the most telling one; None in an empty store.

    Raises:
        UnknownAddress: the address names an experiment that is not there.
    """
    chosen = given.get("experiment", "")
    if chosen and chosen not in snapshot.sections:
        raise UnknownAddress(f"Experiment {shown(chosen)} is not in this store; it has {listed(snapshot.sections)}.")
    if not chosen and snapshot.sections:
        chosen = most_telling(snapshot)
    return snapshot.sections.get(chosen)


def _failures(snapshot: Snapshot) -> list[tuple[str, Failure]]:
    """Return the reasons of failed runs with the name of their experiment."""
    named = []
    for name, section in snapshot.sections.items():
        named += [(name, failure) for failure in failures(section.experiment.runs)]
    return named


def _chosen(snapshot: Snapshot, given: Mapping[str, str]) -> PlannedSection:
    """Return the chosen experiment, or refuse an empty store."""
    section = _experiment(snapshot, given)
    if section is None:
        raise UsageError("This store holds no run yet.")
    return section


def _table(section: PlannedSection, snapshot: Snapshot, given: Mapping[str, str]) -> RunsTable:
    sort, status = given.get("sort", ""), given.get("status", "")
    table = runs_table(section.experiment, snapshot.running, sort=sort, status=status)
    return table.only(kept_labels(given, table))


def _row(name: str, row: Mapping[Any, Any], columns: Sequence[Metric], labels: Sequence[str]) -> Context:
    """Return a row of the table of runs as texts."""
    ended = row["ended"]
    return {
        "name": name,
        "row": row,
        "values": [_number(metric.text, row[metric.column]) for metric in columns],
        "labels": [label_text(stored_value(row[label])) for label in labels],
        "ended": DASH if pd.isna(ended) else _time(ended.timestamp()),
    }


def _reasons(runs: pd.DataFrame) -> list[str]:
    """Return why runs failed, each on one line; empty for the others."""
    reasons = []
    for row in runs.to_dict("records"):
        named = {str(name): value for name, value in row.items()}
        is_failed = row["status"] == "failed"
        reasons.append(one_line(reason_of(named)) if is_failed else "")
    return reasons


def _number(text: Callable[[float], str], value: float) -> str:
    return text(value) if math.isfinite(value) else DASH


def _page_number(text: str) -> int:
    """Return the page of a table that an address asks for; the first one if it is no number."""
    is_number = text.isascii() and text.isdigit() and len(text) < 9
    return int(text) if is_number else 1


def _time(seconds: float) -> str:
    """Format a time given in seconds since 1970."""
    if not math.isfinite(seconds):
        return DASH
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.strftime("%Y-%m-%d %H:%M")


def _query(**given: str) -> str:
    """Return the query of an address, without empty parameters."""
    parameters = {name: value for name, value in given.items() if value}
    return f"?{urlencode(parameters)}"


def _anchor(name: str) -> str:
    """Return the id of the section of an experiment on the overview."""
    characters = [character if character.isalnum() else "-" for character in name]
    return "of-" + "".join(characters)


_HELPERS: Context = {
    "DASH": DASH,
    "anchor": _anchor,
    "as_command": as_command,
    "axis_title": axis_title,
    "mean_text": mean_text,
    "one_line": one_line,
    "plural": plural,
    "query": _query,
    "signed_text": signed_text,
    "time_text": _time,
}
