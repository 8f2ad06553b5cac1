"""`clops-sweep data`: lists, downloads, verifies, prepares and encodes data sets."""

from __future__ import annotations

import csv
import io
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from clops_sweep.cli.group import SectionedGroup
from clops_sweep.cli.options import (
    EXIT_BAD_INPUT,
    Ended,
    NotEmpty,
    NotEmptyPath,
    data_root_option,
    data_set_argument,
    given_spaces,
    json_option,
    plugins_option,
    prepared_root_option,
    print_json,
    results_option,
)
from clops_sweep.cli.plain_table import print_table
from clops_sweep.cli.task_counts import rows_as_data
from clops_sweep.data.catalog import DataKey, Leads, Normalization
from clops_sweep.errors import UsageError, nearest, several

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from rich.table import Table

    from clops_sweep.cli.data_tasks import TasksOfData
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.data.prepared.counts import Row
    from clops_sweep.data.prepared.manifest import Manifest
    from clops_sweep.data.prepared.prepared_folder import PreparedSet
    from clops_sweep.data.preparing.prepared_data import PreparedData
    from clops_sweep.data.records import OnError
    from clops_sweep.learning.encoders.encoders import Encoders

_MOST_PATIENTS_LISTED = 10
_FIRST_PATIENTS = 3
_MOST_PATIENTS_COUNTED = 100
_MOST_PROBLEMS_LISTED = 20
_MOST_COPIES = 6
_WIDE = 200


_split_seed_option = click.option(
    "--split-seed",
    type=click.IntRange(min=0),
    help="Patient split of the tables; by default the first one of the SPACE in the given files, or 0.",
)
_markdown_option = click.option("--markdown", is_flag=True, help="Print the tables as Markdown.")
_patients_option = click.option(
    "--patients", "all_patients", is_flag=True, help="List every patient, also if there are more than 10."
)


@click.group(cls=SectionedGroup)
def data() -> None:
    """List, download, verify, prepare, encode and count data sets."""


@data.command("list")
@data_root_option
@prepared_root_option
@plugins_option
@json_option
def list_data(data_root: Path | None, prepared_root: Path | None, as_json: bool) -> None:
    """List every data set with its licence, size, state and source."""
    from clops_sweep.data.catalog import DATASETS
    from clops_sweep.data.files.folder import shorten
    from clops_sweep.data.prepared.commands import default_prepared_root
    from clops_sweep.data.prepared.prepared_folder import state
    from clops_sweep.data.preparing.features import computed_features
    from clops_sweep.data.preparing.still_equal import current_set

    if data_root is not None and not data_root.is_dir():
        raise UsageError(f"--data-root {shorten(data_root)}: there is no such folder; give the one with the data sets")
    root = prepared_root or default_prepared_root()
    for name in DATASETS:
        with suppress(UsageError):  # its state is "damaged"
            current_set(name, root, data_root)
    states = {name: state(name, prepared_root=root, data_root=data_root) for name in DATASETS}
    features = {name: list(dict.fromkeys(it.encoder for it in computed_features(root / name))) for name in DATASETS}
    if as_json:
        said = ("name", "title", "size", "scenarios", "licence", "source")
        sets = [
            {it: getattr(info, it) for it in said} | {"state": states[info.name], "features_of": features[info.name]}
            for info in DATASETS.values()
        ]
        print_json({"prepared_root": root, "datasets": sets})
        return
    rows = (
        (name, states[name], info.size, " ".join(info.scenarios), " ".join(features[name]))
        for name, info in DATASETS.items()
    )
    print_table(
        ("data set", "state", "size", "scenarios", "features of"),
        rows,
        wrapped=("size", "scenarios", "features of"),
        width=_WIDE,
    )
    click.echo("\nlicences and sources")
    for info in DATASETS.values():
        click.echo(f"\n{info.name}: {info.title}\n  licence: {info.licence}\n  source: {info.source}")


@data.command()
@data_set_argument
@data_root_option
@prepared_root_option
@plugins_option
@click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="At a record that cannot be read: stop, or skip it and list it in the manifest.",
)
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the data set. Repeatable.")
@_split_seed_option
@_markdown_option
@_patients_option
@json_option
def prepare(
    name: str,
    data_root: Path | None,
    prepared_root: Path | None,
    on_error: str,
    options: tuple[str, ...],
    split_seed: int | None,
    markdown: bool,
    all_patients: bool,
    as_json: bool,
) -> None:
    """Convert the publisher's files to the frames that runs train on."""
    from clops_sweep.data.prepared.commands import default_prepared_root
    from clops_sweep.data.prepared.manifest import prepared_content
    from clops_sweep.data.prepared.prepared_folder import is_to_be_made_again
    from clops_sweep.data.preparing.prepare import prepare as make
    from clops_sweep.data.preparing.prepared_data import PreparedData

    root = prepared_root or default_prepared_root()
    chosen = _parsed(name, options)
    before = prepared_content(root / name)
    policy: OnError = "skip" if on_error == "skip" else "stop"
    prepared = make(
        name,
        prepared_root=root,
        data_root=data_root,
        progress=not as_json,
        on_error=policy,
        options=chosen,
        anew=is_to_be_made_again(name, prepared_root=root, data_root=data_root, on_error=policy),
    )
    if prepared.manifest.data_hash != before:
        splits = PreparedData(root, data_root)
        if moved := splits.people_moved(_tasks(prepared.manifest, split_seed, splits).splits.values()):
            click.echo(f"{name}: {moved}", err=True)
    _print_counts(prepared, data_root, split_seed, as_json, markdown=markdown, all_patients=all_patients)


@data.command()
@data_set_argument
@click.option(
    "--encoder",
    required=True,
    type=NotEmpty(),
    metavar="NAME",
    help="A declared encoder, or run:RUN_ID for the network of a stored run.",
)
@results_option
@data_root_option
@prepared_root_option
@plugins_option
@click.option(
    "--normalize",
    type=click.Choice(get_args(Normalization)),
    help="Normalisation of the signals; by default that of the data set.",
)
@click.option(
    "--leads",
    type=click.Choice(get_args(Leads)),
    help="One lead of each recording or all of them; by default that of the data set.",
)
@json_option
def encode(
    name: str,
    encoder: str,
    results: str,
    data_root: Path | None,
    prepared_root: Path | None,
    normalize: str | None,
    leads: str | None,
    as_json: bool,
) -> None:
    """Compute an encoder's features of a data set. Otherwise, the first launch that needs them computes them.

    --results is the store with the model of run:RUN_ID; other encoders do not need it.
    """
    from clops_sweep.data.catalog import DATASETS
    from clops_sweep.data.preparing.prepared_data import PreparedData
    from clops_sweep.experiment.plugins.registry import ENCODERS, is_stored_run

    if name not in DATASETS:
        raise UsageError(f"dataset {name!r}: no data set of that name{nearest(name, DATASETS)}")
    try:
        if not is_stored_run(encoder) and encoder not in ENCODERS:
            raise ValueError(
                f"not declared{nearest(encoder, ENCODERS)}; name the file that does so with --plugins FILE"
            )
    except ValueError as error:
        raise UsageError(f"encoder {encoder!r}: {error}") from None
    encoders = _encoders(results, data_root)
    prepared = PreparedData.found(prepared_root, data_root, encoders)
    info = DATASETS[name]
    key = DataKey(name, 0, normalize or info.normalize, leads or info.leads, encoder=encoder)
    prepared.prepare([key])
    frames = prepared.frames(key)
    if as_json:
        size = {"channels": frames.channels, "features": frames.samples, "bytes": frames.frames.nbytes}
        print_json({"name": name, "encoder": encoder, "frames": len(frames), **size})
        return
    shape = f"{frames.samples:,}" if frames.members is None else f"{frames.channels:,} x {frames.samples:,}"
    click.echo(
        f"{name}: {shape} features of {encoder} for each of {len(frames):,} frames, {_megabytes(frames.frames.nbytes)}"
    )


@data.command()
@data_set_argument
@data_root_option
@prepared_root_option
@plugins_option
@_split_seed_option
@_markdown_option
@_patients_option
@json_option
def counts(
    name: str,
    data_root: Path | None,
    prepared_root: Path | None,
    split_seed: int | None,
    markdown: bool,
    all_patients: bool,
    as_json: bool,
) -> None:
    """Count frames and patients per class, task and patient. The data set must be prepared."""
    prepared = _prepared(name, prepared_root, data_root)
    _print_counts(prepared, data_root, split_seed, as_json, markdown=markdown, all_patients=all_patients)


@data.command("folds")
@data_set_argument
@data_root_option
@prepared_root_option
@plugins_option
@click.option(
    "--number",
    type=click.IntRange(min=3),
    metavar="K",
    help="The number of folds; by default that of the search spaces in the given files.",
)
@click.option(
    "--split-seed",
    "split_seeds",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="SEED",
    help="A split seed; by default those of the search spaces with folds in the given files, or 0. Repeatable.",
)
@click.option(
    "--stratify",
    type=NotEmpty(),
    metavar="COLUMN",
    help="The column that RunConfig names as stratify; by default that of the search spaces in the given files.",
)
@click.option(
    "--edition",
    type=NotEmpty(),
    metavar="HASH",
    help="An earlier edition, by the beginning of HASH in the name of its folder, NAME@HASH.",
)
@click.option("-o", "--output", type=NotEmptyPath(), metavar="FILE", help="Write to this new file instead of printing.")
@json_option
def folds_of_people(
    name: str,
    data_root: Path | None,
    prepared_root: Path | None,
    number: int | None,
    split_seeds: tuple[int, ...],
    stratify: str | None,
    edition: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Print the fold of each person as CSV, which @dataset(..., folds=FILE) keeps when labels change.

    FILE.py, or --plugins, gives the search spaces whose runs have these folds. The data set must be prepared, or the
    earlier edition kept.
    """
    from clops_sweep.cli.folds_of_spaces import folds_asked
    from clops_sweep.data.declared.fold_table import TITLES
    from clops_sweep.data.files.folder import one_sentence, shorten
    from clops_sweep.data.prepared.prepared_split import fold_of_people

    asked = folds_asked(name, given_spaces(), number=number, split_seeds=split_seeds, stratify=stratify)
    prepared = _prepared(name, prepared_root, data_root) if edition is None else _edition(name, prepared_root, edition)
    rows: list[tuple[str, int, int]] = []
    for split_seed in asked.split_seeds:
        fold_of = fold_of_people(prepared, asked.number, split_seed, asked.stratify)
        rows += [(person, fold, split_seed) for person, fold in fold_of.items()]
    click.echo(f"{name}: {asked}", err=True)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(TITLES)
    writer.writerows(rows)
    if output is not None:
        if output.exists():
            raise UsageError(f"{shorten(output)}: exists already and is not replaced; choose another name")
        with one_sentence(output):
            output.write_text(table.getvalue(), encoding="utf-8")
    if as_json:
        print_json({"name": name, "file": output, "folds": [dict(zip(TITLES, row, strict=True)) for row in rows]})
    else:
        click.echo(table.getvalue() if output is None else f"folds: {output}\n", nl=False)


@data.command()
@data_set_argument
@data_root_option
@prepared_root_option
@plugins_option
@_split_seed_option
@click.option(
    "-o", "--output", type=NotEmptyPath(), metavar="FILE", help="File of the page; by default NAME.html in this folder."
)
@click.option("--encoder", type=NotEmpty(), metavar="NAME", help="Show frames as this encoder takes them, too.")
@results_option
@json_option
def look(
    name: str,
    data_root: Path | None,
    prepared_root: Path | None,
    split_seed: int | None,
    output: Path | None,
    encoder: str | None,
    results: str,
    as_json: bool,
) -> None:
    """Write one HTML page on a prepared data set: counts, signals, frames of each class, warnings."""
    from clops_sweep.analysis.look import look as page_of
    from clops_sweep.data.files.folder import one_sentence

    file = output or Path(f"{name}.html")
    adapter_of = partial(_encoders(results, data_root).adapter, encoder) if encoder else None
    page = page_of(_prepared(name, prepared_root, data_root), split_seed or 0, encoder or "", adapter_of)
    with one_sentence(file):
        file.write_text(page, encoding="utf-8")
    if as_json:
        print_json({"name": name, "file": file})
    else:
        click.echo(f"{name}: {file}")


@data.command()
@click.argument("name")
@click.option(
    "--data-root",
    envvar="CLOPS_DATA_ROOT",
    type=NotEmptyPath(),
    metavar="DIR",
    help="Folder in which the data set's folder is created (or CLOPS_DATA_ROOT).",
)
@json_option
def download(name: str, data_root: Path | None, as_json: bool) -> None:
    """Download an open data set from PhysioNet into the data root. Repeat it to continue an interrupted download.

    NAME is mitbih, vfdb, mitbih_vfdb (both), ptbxl or physionet2020.
    """
    from clops_sweep.data.published.download import download as fetch

    if data_root is None:
        raise UsageError("data download needs a folder for the files; give it with --data-root DIR")
    folders = fetch(name, data_root, progress=not as_json)
    if as_json:
        print_json({"name": name, "folders": folders})
        return
    for folder in folders:
        click.echo(f"{name}: in {folder}")


@data.command()
@data_set_argument
@data_root_option
@prepared_root_option
@plugins_option
@json_option
def verify(name: str, data_root: Path | None, prepared_root: Path | None, as_json: bool) -> None:
    """Check records, checksums and prepared frames of a data set.

    NAME is a data set of 'data list', or vfdb.
    """
    from clops_sweep.data.prepared.commands import data_command, default_prepared_root
    from clops_sweep.data.prepared.freshness import changes_in_words
    from clops_sweep.data.prepared.prepared_folder import changes_since
    from clops_sweep.data.preparing.verify import verify as check

    root = prepared_root or default_prepared_root()
    found = check(name, prepared_root=root, data_root=data_root)
    if as_json:
        print_json({"name": name, **vars(found)})
        if found.problems:
            raise Ended(EXIT_BAD_INPUT)
        return
    if len(found.problems) == 1:
        raise UsageError(found.problems[0])
    if found.problems:
        for problem in found.problems[:_MOST_PROBLEMS_LISTED]:
            click.echo(problem, err=True)
        more = "; the first ones are above" if len(found.problems) > _MOST_PROBLEMS_LISTED else ", listed above"
        raise UsageError(f"{name}: {len(found.problems):,} problems{more}; fix them and verify again")
    click.echo(f"{name}: {several(found.records, 'record')} {'is' if found.records == 1 else 'are'} intact")
    if found.published:
        click.echo(f"{name}: {found.published} files have the publisher's SHA-256")
    if name == "vfdb":
        of_frames = data_command("verify", "mitbih_vfdb", prepared_root=root, data_root=data_root)
        click.echo(f"vfdb: prepared as part of mitbih_vfdb; '{of_frames}' checks the frames")
        return
    if found.prepared:
        click.echo(f"{name}: the prepared frames are intact and match these files")
    elif changed := changes_since(name, root, data_root):
        click.echo(f"{name}: changed since it was prepared ({changes_in_words(changed)})")
    else:
        click.echo(f"{name}: not prepared")


@data.command()
@click.argument("names", nargs=-1, metavar="[NAME ...]")
@prepared_root_option
@click.option(
    "--unused-for",
    type=click.IntRange(min=0),
    metavar="DAYS",
    help="Remove the data sets that no process has opened for this many days.",
)
@json_option
def evict(names: tuple[str, ...], prepared_root: Path | None, unused_for: int | None, as_json: bool) -> None:
    """List prepared data sets with their sizes, or remove some.

    Without NAME and --unused-for, nothing is removed. Frames that a running sweep has open are never removed. A sweep
    that needs a removed data set prepares it again.
    """
    from clops_sweep.data.prepared.cache import cached_sets
    from clops_sweep.data.prepared.cache import evict as remove
    from clops_sweep.data.prepared.commands import default_prepared_root

    root = prepared_root or default_prepared_root()
    if names and unused_for is not None:
        raise UsageError("data evict: names and --unused-for DAYS are both given; expected one of them")
    there = cached_sets(root)
    if not names and unused_for is None and not as_json:
        when = (time.strftime("%Y-%m-%d %H:%M", time.localtime(it.last_used)) for it in there)
        rows = (
            (it.folder.name, _megabytes(it.size), used, "in use" if it.in_use else "")
            for it, used in zip(there, when, strict=True)
        )
        print_table(("data set", "size", "last used", ""), rows, wrapped=["size"], width=_WIDE)
        total = _megabytes(sum(it.size for it in there))
        click.echo(f"{several(len(there), 'data set')}, {total} in {root}")
        return
    kept: list[str] = []
    if unused_for is not None:
        old = [it for it in there if it.days_unused >= unused_for]
        names = tuple(it.folder.name for it in old if not it.in_use)
        kept = [it.folder.name for it in old if it.in_use]
    removed = remove(root, names) if names or unused_for is not None else []
    if as_json:
        sets = [vars(it) | {"name": it.folder.name} for it in there]
        print_json({"prepared_root": root, "datasets": sets, "evicted": [it.folder.name for it in removed]})
        return
    for folder in kept:
        click.echo(f"kept {folder}: a running process has its frames open")
    for it in removed:
        click.echo(f"evicted {it.folder.name}: {_megabytes(it.size)}")
    click.echo(f"{several(len(removed), 'data set')} evicted, {_megabytes(sum(it.size for it in removed))} freed")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _parsed(name: str, options: tuple[str, ...]) -> dict[str, int | float | str | bool] | None:
    """Parse NAME=VALUE pairs to the types of the defaults; None without pairs."""
    from clops_sweep.data.sets.named import data_set

    if not options:
        return None
    defaults = data_set(name).rules.options
    values: dict[str, int | float | str | bool] = {}
    for option in options:
        key, _, text = option.partition("=")
        kind = type(defaults.get(key, text))
        try:
            values[key] = kind(text)
        except ValueError:
            raise UsageError(
                f"--option {option}: expected {key}={kind.__name__}, as in {key}={defaults[key]}"
            ) from None
    data_set(name, values)  # report invalid options before reading anything
    return values


def _print_counts(
    prepared: PreparedSet,
    data_root: Path | None,
    split_seed: int | None,
    as_json: bool,
    *,
    markdown: bool,
    all_patients: bool,
) -> None:
    """Print counts per class, task and patient, dropped and skipped recordings, and notes.

    Of more than 10 patients, the first three are listed, unless all are asked for.
    """
    import numpy as np
    from rich.box import MARKDOWN
    from rich.console import Console

    from clops_sweep.data.catalog import DATASETS
    from clops_sweep.data.left_out import sentences, sentences_on_domains
    from clops_sweep.data.prepared.counts import (
        channel_ranges,
        class_rows,
        patient_table,
        total_row,
        without_class,
    )
    from clops_sweep.data.prepared.manifest import MANIFEST, left_out, mostly_dropped
    from clops_sweep.data.prepared.quality import quality_tables
    from clops_sweep.data.prepared.quality_cells import quality_cells
    from clops_sweep.data.preparing.prepared_data import PreparedData
    from clops_sweep.data.same_samples import leaks_of
    from clops_sweep.data.scenarios import reference_lead_of
    from clops_sweep.data.sets.named import data_set

    # Without a terminal there is no width limit, and tables must not be cut.
    # Sentences and names hold brackets that are no markup, as in pip install 'clops-sweep[edf]'.
    width = None if sys.stdout.isatty() else _WIDE
    console, manifest = Console(width=width, markup=False, emoji=False), prepared.manifest

    def show(title: str, table: Table) -> None:
        if markdown:
            table.box = MARKDOWN
        console.print(f"\n{title}\n", highlight=False)
        console.print(table)

    info = DATASETS[manifest.name]
    splits = PreparedData(prepared.folder.parent, data_root)
    tasks = _tasks(manifest, split_seed, splits)
    frames = splits.frames(tasks.key._replace(leads=info.leads))
    chosen = reference_lead_of(frames)
    one_lead = (
        f", lead {info.reference_lead} of {len(frames.lead_names)}"
        if info.reference_lead and info.leads == "single"
        else ""
    )
    rows = [*class_rows(frames, chosen), total_row(frames, chosen)]
    channels = channel_ranges(manifest, prepared.table)
    quality = {} if manifest.info is None else quality_tables(prepared)
    warning = mostly_dropped(manifest, len(np.unique(prepared.table.recordings)))
    leaks = [*leaks_of(manifest.notes), *_copies(frames, tasks, splits)]
    if as_json:
        of_set = {it: getattr(manifest, it) for it in ("name", "options", "skipped", "notes")}
        counts_by_reason = dict(manifest.dropped)
        counts_by_reason |= {omission.reason.text: omission.count for omission in manifest.left_out}
        warnings = [*([warning] if warning else []), *leaks]
        lists_people = all_patients or len(frames.patient_names) <= _MOST_PATIENTS_COUNTED
        print_json(
            {**of_set, "dropped": counts_by_reason, "left_out": [asdict(omission) for omission in manifest.left_out]}
            | {"folder": prepared.folder, "frames": len(frames), "classes": rows_as_data(rows)}
            | {it: getattr(manifest, it) for it in ("unit", "sampling_rate", "samples")}
            | {"frame_unit": manifest.frame_words}
            | {"default_options": dict(data_set(manifest.name).rules.options)}
            | {"lead": info.reference_lead if one_lead else None, "people": len(frames.patient_names)}
            | {"frames_by_patient": _patients_as_data(frames, chosen) if lists_people else None}
            | {"counted_split": tasks.counted_split}
            | {"tasks_counted": {it: tasks.headings[it].removeprefix(", ") for it in tasks.rows}}
            | {"warnings": warnings, "refused": _refusal(manifest.name, tasks)}
            | {"channels": [dict(zip(("name", "lowest", "highest", "missing"), it, strict=True)) for it in channels]}
            | {"quality": {column: list(map(asdict, of_column)) for column, of_column in quality.items()}}
            | {"tasks": {name: rows_as_data(it) for name, it in tasks.rows.items()}, "impossible": tasks.impossible}
        )
        if tasks.nothing_runs or tasks.refused:
            raise Ended(EXIT_BAD_INPUT)
        return
    if warning:
        console.print(f"warning: {warning}", style="yellow", highlight=False, soft_wrap=True)
    counted = f", {tasks.counted_split}" if tasks.counted_split else ""
    show(f"{manifest.name}: frames (patients) per class{one_lead}{counted}", _split_table("class", rows))
    if sentence := without_class(frames, chosen):
        console.print(f"\n{sentence}", highlight=False, soft_wrap=True)
    for name, of_tasks in tasks.rows.items():
        title = f"{manifest.name}, {name}: frames (patients) per task{tasks.headings[name]}"
        show(title, _split_table("task", of_tasks))
    many = len(frames.patient_names)
    if many <= _MOST_PATIENTS_COUNTED or all_patients:
        patients = patient_table(frames, chosen)
        is_folded = len(patients) > _MOST_PATIENTS_LISTED and not all_patients
        first = patients[:_FIRST_PATIENTS] if is_folded else patients
        show(f"{manifest.name}: frames per patient", _patients_table(frames.classes, first))
        if is_folded:
            more = len(patients) - len(first)
            console.print(f"and {more} more patients; --patients lists all", highlight=False, soft_wrap=True)
    else:
        line = f"\n{manifest.name}: {many:,} patients; --patients lists the frames of each"
        console.print(line, highlight=False, soft_wrap=True)
    show(f"{manifest.name}: signals", _channels_table(manifest, channels))
    for column, of_column in quality.items():
        by = f" by {column}" if column else ""
        show(f"{manifest.name}: people and recordings{by}", _table(*quality_cells(column, of_column)))
    console.print()
    rate = "" if manifest.sampling_rate is None else f", {manifest.sampling_rate:g} samples a second"
    missing = manifest.dropped.get("missing samples", 0)
    seconds = "" if manifest.frame_seconds is None else f" ({manifest.frame_seconds:g} s)"
    said = (
        f"{manifest.samples:,} samples a frame{seconds}{rate}; {several(missing, 'frame')} dropped for missing samples"
    )
    console.print(said, highlight=False, soft_wrap=True)
    if line := _options_line(manifest, prepared.folder.parent, data_root):
        console.print(line, highlight=False, soft_wrap=True)
    dropped = left_out(manifest)
    for sentence in [*sentences(dropped, named=True), *sentences_on_domains(dropped)]:
        console.print(f"dropped: {sentence}", highlight=False, soft_wrap=True)
    if any(omission.hides_names() for omission in dropped):
        console.print(f"all names: left_out in {prepared.folder / MANIFEST}", highlight=False, soft_wrap=True)
    for record, reason in manifest.skipped[:_MOST_PROBLEMS_LISTED]:
        console.print(f"skipped: {record}: {reason}", highlight=False)
    if more := len(manifest.skipped[_MOST_PROBLEMS_LISTED:]):
        console.print(f"skipped: and {more:,} more, all in {prepared.folder / MANIFEST}", highlight=False)
    for note in manifest.notes:
        if note not in leaks:
            console.print(f"note: {note}", highlight=False)
    for warning in leaks:
        console.print(f"warning: {warning}", style="yellow", highlight=False, soft_wrap=True)
    total = f"{len(frames):,} {manifest.frame_words} in {prepared.folder}"
    console.print(total, highlight=False, soft_wrap=True)
    for name, problem in tasks.impossible.items():
        lacking = "no tasks in some splits" if name in tasks.rows else "no tasks"
        console.print(f"{lacking}: {name}: {problem}", style="yellow", highlight=False, soft_wrap=True)
    if tasks.nothing_runs:
        reasons = "the reason is" if len(tasks.impossible) == 1 else "the reasons are"
        raise UsageError(f"{_refusal(manifest.name, tasks)}; {reasons} above")
    if tasks.refused:
        raise UsageError(f'{_refusal(manifest.name, tasks)}; the reason is above, after "no tasks"')


def _patients_as_data(frames: FrameSet, chosen: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Return the frames of each class of every patient as data."""
    from clops_sweep.data.prepared.counts import patient_table

    rows = []
    for name, part, counts in patient_table(frames, chosen):
        rows.append({"name": name, "split": part, "frames": dict(zip(frames.classes, counts, strict=True))})
    return rows


def _refusal(name: str, tasks: TasksOfData) -> str | None:
    """Return why a launch on a prepared data set is refused, without the reasons; None if it is not."""
    if tasks.nothing_runs:
        return f"{name}: nothing can be run on these frames, as no scenario has tasks"
    if tasks.refused:
        return f"{name}: the frames are prepared, but a launch of {tasks.refused} is refused"
    return None


def _copies(frames: FrameSet, tasks: TasksOfData, data: PreparedData) -> Iterator[str]:
    """Yield a sentence on test people of splits with recordings of other people in training, if there are any."""
    import numpy as np

    from clops_sweep.data.files.folder import shorten
    from clops_sweep.data.frames import TEST, TRAINING, VALIDATION
    from clops_sweep.data.scenarios.leaks import copies_of_splits

    if not frames.leaks:
        return
    parts = []
    for key in tasks.splits.values():
        split = data.frames(key).split
        parts.append((np.flatnonzero(split == TEST), np.flatnonzero(np.isin(split, (TRAINING, VALIDATION)))))
    sentences = []
    for name, (tested, _), copies in zip(tasks.splits, parts, copies_of_splits(frames, parts), strict=True):
        if copies:
            people = len(np.unique(frames.patients[tested]))
            pairs = [f"{shorten(person)} those of {shorten(other)}" for person, other in copies.items()]
            named = ", ".join([*pairs[:_MOST_COPIES], *(["..."] if len(pairs) > _MOST_COPIES else [])])
            of_split = f"{name}: " if name else ""
            sentences.append(f"{of_split}{len(copies):,} of {people:,} people in test ({named})")
    if sentences:
        yield (
            "people in test have recordings that are in training or validation under another name, so scores can be "
            f"too high; give both one patient, or leave one out: {'; '.join(sentences)}"
        )


def _tasks(manifest: Manifest, split_seed: int | None, data: PreparedData) -> TasksOfData:
    """Return the tasks of the search spaces in the given files; also the default ones, if these have none."""
    from clops_sweep.cli.data_tasks import default_tasks, tasks_of_spaces

    requested = tasks_of_spaces(manifest.name, given_spaces(), split_seed, data)
    if requested is not None and requested.rows:
        return requested
    usual = default_tasks(manifest.name, split_seed or 0, data, is_declared=manifest.info is not None)
    return usual if requested is None else requested.before(usual)


def _options_line(manifest: Manifest, prepared_root: Path, data_root: Path | None) -> str:
    """Return the options of a prepared set and how to get the defaults if they differ; empty without options."""
    from clops_sweep.data.prepared.commands import data_command
    from clops_sweep.data.sets.named import data_set

    defaults = data_set(manifest.name).rules.options
    if not defaults:
        return ""
    line = "options: " + ", ".join(f"{key}={manifest.options[key]}" for key in defaults)
    others = [key for key, value in defaults.items() if manifest.options[key] != value]
    if not others:
        return line
    words: list[str] = []
    for key in others:
        words += ["--option", f"{key}={defaults[key]}"]
    back = data_command("prepare", manifest.name, *words, prepared_root=prepared_root, data_root=data_root)
    return f"{line}; not the default {', '.join(f'{key}={defaults[key]}' for key in others)}, which '{back}' restores"


def _encoders(results: str, data_root: Path | None) -> Encoders:
    """Return the encoders that are declared, and the networks of runs in a store."""
    from clops_sweep.learning.encoders.encoders import Encoders
    from clops_sweep.store.run_store import RunStore

    return Encoders(lambda run_id: RunStore.named(results).models.read(run_id), data_root)


def _prepared(name: str, prepared_root: Path | None, data_root: Path | None) -> PreparedSet:
    """Return a prepared data set, which need not be declared here."""
    from clops_sweep.data.prepared.commands import default_prepared_root
    from clops_sweep.data.prepared.prepared_folder import register_prepared
    from clops_sweep.data.preparing.still_equal import required_current_set

    root = prepared_root or default_prepared_root()
    register_prepared(name, root)
    return required_current_set(name, root, data_root)


def _edition(name: str, prepared_root: Path | None, edition: str) -> PreparedSet:
    """Return an edition of a data set, the present one if it has this hash, even if its files changed since."""
    from clops_sweep.data.prepared.commands import default_prepared_root
    from clops_sweep.data.prepared.earlier_editions import earlier_root, is_edition
    from clops_sweep.data.prepared.manifest import check_sizes, read_manifest
    from clops_sweep.data.prepared.prepared_folder import PreparedSet, register_prepared

    root = prepared_root or default_prepared_root()
    manifest = None
    with suppress(UsageError):  # the present edition is damaged, and another one may be asked for
        manifest = read_manifest(root / name)
    if manifest is None or not is_edition(manifest, edition):
        root = earlier_root(name, root, edition)
        manifest = read_manifest(root / name)
    register_prepared(name, root)
    if manifest is None:
        raise UsageError(f"edition {edition!r}: {root / name} has no prepared data; expected an edition that is kept")
    check_sizes(root / name, manifest)
    return PreparedSet(root / name, manifest)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1) -> Table:
    """Return a table whose columns after the first `names` hold numbers."""
    from rich.table import Table

    table = Table()
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < names else "right")
    for row in rows:
        table.add_row(*row)
    return table


def _split_table(what: str, rows: Sequence[Row]) -> Table:
    from clops_sweep.data.frames import SPLIT_NAMES

    def cells(row: Row) -> Iterator[str]:
        for count, people in zip(row.frames, row.patients, strict=True):
            yield str(count) if people is None else f"{count} ({people})"

    return _table([what, *SPLIT_NAMES], ([row.name, *cells(row)] for row in rows))


def _channels_table(manifest: Manifest, channels: Sequence[tuple[str, float, float, int]]) -> Table:
    from clops_sweep.data.files.units import of_each

    units = of_each(manifest.unit, len(channels))
    if len(set(units)) > 1:
        rows = []
        for (name, low, high, missing), unit in zip(channels, units, strict=True):
            rows.append([name, unit, f"{low:.6g}", f"{high:.6g}", f"{missing:,}"])
        return _table(["channel", "unit", "lowest", "highest", "frames with missing samples"], rows, names=2)
    unit = f" ({manifest.unit})" if manifest.unit else ""
    return _table(
        ["channel", f"lowest{unit}", f"highest{unit}", "frames with missing samples"],
        ([name, f"{low:.6g}", f"{high:.6g}", f"{missing:,}"] for name, low, high, missing in channels),
    )


def _patients_table(classes: Sequence[str], rows: Sequence[tuple[str, str, tuple[int, ...]]]) -> Table:
    listed = ([patient, part, *(str(count) if count else "" for count in counts)] for patient, part, counts in rows)
    return _table(["patient", "split", *classes], listed, names=2)
