"""`clops-sweep update-report`: reports what changes for which patients when one model replaces another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clops_sweep.cli.options import (
    EXIT_FAILED,
    EXIT_UNDECIDED,
    Ended,
    NotEmpty,
    NotEmptyPath,
    data_root_option,
    json_option,
    optional_run_id_argument,
    plugins_option,
    prepared_root_option,
    print_json,
    results_option,
)
from clops_sweep.cli.waiting import waiting
from clops_sweep.cli.who import print_people
from clops_sweep.errors import UsageError
from clops_sweep.store.launch_folders import update_report_command
from clops_sweep.store.rows import printable
from clops_sweep.store.run_store import RunStore

if TYPE_CHECKING:
    from clops_sweep.analysis.update.findings import Decision, Findings
    from clops_sweep.data.preparing.prepared_data import PreparedData


@click.command("update-report")
@optional_run_id_argument
@click.option("--against", metavar="RUN_ID", help="The run whose last model would be replaced.")
@click.option(
    "--folds",
    is_flag=True,
    help="Pool the runs that differ from RUN_ID in the fold alone: each person is judged once.",
)
@click.option(
    "--groups",
    type=NotEmpty(),
    metavar="COLUMN,...",
    help="Columns of the data set that define subgroups, such as sex,age.",
)
@click.option(
    "--criteria", "criteria_file", type=NotEmptyPath(), metavar="FILE", help="TOML file with acceptance criteria."
)
@click.option("--title", type=NotEmpty(), metavar="TEXT", help="Words at the top of the page, such as a hospital.")
@click.option(
    "--who",
    type=NotEmpty(),
    multiple=True,
    metavar="PSEUDONYM,...",
    help="Print the ids and recordings of people of the page, and draw no page; works where the page was drawn. "
    "'flipped' takes all whose decisions changed.",
)
@results_option
@click.option(
    "--output",
    type=NotEmptyPath(),
    metavar="FILE",
    help="HTML file to write; by default report/update-RUN_ID.html in the store, update-RUN_ID-folds.html with --folds "
    "and update-RUN_ID-against-RUN_ID.html with --against.",
)
@plugins_option
@data_root_option
@prepared_root_option
@json_option
def update_report(
    run_id: str | None,
    against: str | None,
    folds: bool,
    groups: str | None,
    criteria_file: Path | None,
    title: str | None,
    who: tuple[str, ...],
    results: str,
    output: Path | None,
    data_root: Path | None,
    prepared_root: Path | None,
    as_json: bool,
) -> None:
    """Report what changes for which patients when one model replaces another. RUN_ID may be any unambiguous prefix.

    Without RUN_ID, the command names the newest run that fits. Without --against, the run's model after the last task
    is compared with its model before that task. With --folds, this is done for the runs of all folds, and each person
    is judged by the run that tests them: axes={"split": folds(5)}. With both, the last models of all folds of RUN_ID's
    settings replace those of the other run's. If the run of --against is on other data, its stored model (--keep
    models) is applied to the test instances of RUN_ID, without people whom it was trained on. Needs predictions
    (--keep predictions). The exit status is 1 if a criterion fails, and 3 if none fails but the update is not judged:
    a criterion has too few patients or is not certain as asked, or there is no --criteria.
    """
    from clops_sweep.analysis.drawing.style import write_whole
    from clops_sweep.analysis.update.criteria import read_criteria
    from clops_sweep.analysis.update.page import (
        by_verdict,
        earlier_in_words,
        settings_that_differ,
        verdict,
        what_can_be_shown,
    )
    from clops_sweep.analysis.update.report import make_report, newest_that_fits
    from clops_sweep.analysis.update.shares import percent, percents
    from clops_sweep.analysis.update.written import judged_before, page_to_write
    from clops_sweep.data.files.folder import one_sentence
    from clops_sweep.data.preparing.prepared_data import PreparedData
    from clops_sweep.learning.encoders.encoders import Encoders

    names = [] if groups is None else [name.strip() for name in groups.split(",")]
    if not all(names):
        raise UsageError(f"--groups {groups!r}: expected names of columns with commas between them")
    asked = _pseudonyms(who)
    criteria = None if criteria_file is None else read_criteria(criteria_file)
    store = RunStore.named(results)
    store.files.check_is_there()
    given = {
        "--against": against,
        "--folds": folds,
        "--groups": groups,
        "--criteria": criteria_file,
        "--title": title,
        "--output": output,
    }
    data = PreparedData.found(prepared_root, data_root, Encoders(store.models.read, data_root))
    if run_id is None:
        fitting = newest_that_fits(store, _left_out(store, against, data, folds), folds=folds)
        raise UsageError(_offer(store, fitting, given))
    if asked:
        print_people(store, run_id, asked, data, against=against, folds=folds, as_json=as_json)
        return
    with waiting(f"reading the predictions of run {run_id} and drawing patients again"):
        report = make_report(
            store, run_id, against, names, criteria, data, criteria_file, folds=folds, title=title or ""
        )
    beside = store.files.folder
    compared = report.run_id + (f"-against-{report.against}" if report.against else "")
    compared += "-folds" if report.folds else ""
    usual = (Path() if beside is None else beside) / "report" / f"update-{compared}.html"
    report = replace(report, judged_before=judged_before(usual, report.parts, report.limits))
    page = output or page_to_write(usual, report.parts)
    if page.is_dir():
        raise UsageError(f"{page}: it is a folder; expected the name of an HTML file")
    complete = update_report_command(store, report.run_id, *_words(given))
    for sentence in _notices(report, usual if output is None else output, page, complete):
        click.echo(f"clops-sweep: {sentence}", err=True)
    with one_sentence(page):
        write_whole(page, report.html().encode())
    if as_json:
        print_json({"results": store.files.shown, "report": page.resolve(), **report.as_data()})
    else:
        everything, *_ = report.flips
        units = everything.units
        before, after, _ = percents(everything.accuracy, units)
        changed = f"{before} to {after}"
        click.echo(f"compared on {report.data['compared on']} [95 % interval over {report.drawn}]")
        if report.against:
            click.echo(f"  {printable(settings_that_differ(report))}")
        if "edition" in report.data:
            click.echo(f"  {printable(report.data['edition'])}")
        if "began from" in report.data:
            click.echo(f"  {printable(report.data['began from'])}.")
        if report.other_data:
            click.echo(f"  {printable(report.other_data)}")
        if report.copies:
            click.echo(f"  {report.copies}")
        if report.pooled:
            click.echo(f"  {report.pooled}")
        click.echo(f"  became wrong  {percent(everything.right_to_wrong, units)}")
        click.echo(f"  became right  {percent(everything.wrong_to_right, units)}")
        click.echo(f"  accuracy      {changed}")
        if report.recordings:
            click.echo(f"  {report.recordings}")
        for line in earlier_in_words(report):
            click.echo(f"  {line}")
        click.echo(f"  {what_can_be_shown(report)}")
        for name in report.new_classes:
            after = percent(name.accuracy, name.units)
            click.echo(f"  new class {name.name}: not available before, accuracy {after} after")
        for sentence in (*report.brought, report.decided):
            if sentence:
                click.echo(f"  {sentence}")
        if report.judged_on:
            click.echo(f"  {printable(report.judged_on)}")
        for decision in by_verdict(report.criteria):
            click.echo(f"  {_in_words(decision, report)}")
        click.echo(verdict(report))
        if report.judged_before:
            click.echo(printable(report.judged_before))
        click.echo(f"report: {page.resolve()}")
    if report.holds is None:
        raise Ended(EXIT_UNDECIDED)
    if not report.holds:
        raise Ended(EXIT_FAILED)


def _pseudonyms(who: tuple[str, ...]) -> list[str]:
    """Return the pseudonyms of all options `--who` as they were typed, or "flipped"."""
    asked = []
    for names in who:
        asked += [name.strip() for name in names.split(",")]
        if not all(asked):
            raise UsageError(f"--who {names!r}: expected pseudonyms with commas between them, or flipped")
    return ["flipped" if name.lower() == "flipped" else name for name in asked]


def _left_out(store: RunStore, against: str | None, data: PreparedData, folds: bool) -> list[str]:
    """Return the runs that cannot replace another run: that run, with `folds` those of all folds of its settings."""
    from clops_sweep.analysis.runs_of_folds import runs_to_pool

    if against is None:
        return []
    if not folds:
        return [against]
    (row,) = store.rows("runs", run_ids=[store.find(against)])
    return runs_to_pool(store, row, data) or [against]


def _words(given: Mapping[str, str | Path | bool | None]) -> list[str]:
    """Return options with their values as words, without those that were not given."""
    words: list[str] = []
    for name, value in given.items():
        if isinstance(value, bool):
            words += [name] if value else []
        elif value is not None:
            words += [name, str(value)]
    return words


def _notices(report: Findings, asked: Path, page: Path, complete: str) -> Iterator[str]:
    """Yield what a page lacks or replaces.

    Args:
        report: the report to write.
        asked: the path that was asked for.
        page: the path that is written.
        complete: the command that gives all parts.
    """
    from clops_sweep.analysis.update.written import why_kept

    if report.without_frames:
        yield printable(f"no tracings and no titles of tasks: {report.without_frames}; with them: {complete}")
    why = why_kept(asked, report.parts)
    if why and page == asked:
        yield f"{asked}: replaced as asked, but {why}"
    elif why:
        yield f"{asked}: kept, because {why}; this report is {page.name}"


def _in_words(decision: Decision, report: Findings) -> str:
    """Return a line on one criterion: verdict, value, limit and what it is about."""
    from clops_sweep.analysis.update.page import doubt_about, evaluated
    from clops_sweep.analysis.update.shares import measured

    of = f" of {decision.of}" if decision.of else ""
    mark = {True: "holds", False: "FAILS", None: "-----"}[decision.holds]
    limit = f"limit {100 * decision.limit:g} %"
    about = evaluated(decision, report)
    if not decision.is_tested:
        return f"{mark}  {decision.criterion}{of}: not tested, {limit}; {about}"
    line = f"{mark}  {decision.criterion}{of}: {measured(decision)}, {limit}; {about}"
    if decision.is_about_few:
        return f"{line}, too few to judge"
    doubt = doubt_about(decision, report.unit)
    return f"{line}; {doubt}" if doubt else line


def _offer(store: RunStore, run_id: str | None, given: Mapping[str, str | Path | bool | None]) -> str:
    """Return what to do without a run id: the command for the newest run that fits, if there is one.

    Args:
        store: the store.
        run_id: the newest run that fits.
        given: options that the command keeps, None where it was not given.
    """
    if run_id is None:
        return (
            f"update-report: expected a run id, and {store.files.shown} has no run that fits; run a search space again "
            "with --keep predictions, which adds them to finished runs"
        )
    command = update_report_command(store, run_id, *_words(given))
    return f"update-report: expected a run id; for the newest run that fits: {command}"
