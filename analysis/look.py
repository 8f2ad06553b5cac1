"""`clops-sweep data look NAME`: one HTML page on a prepared data set, to read before a sweep."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from clops_sweep.analysis.drawing.scale_bars import bar_length
from clops_sweep.analysis.drawing.style import as_png, colour, new_figure
from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.frames import SPLIT_NAMES
from clops_sweep.data.prepared.counts import channel_ranges, class_rows, patient_table, total_row
from clops_sweep.data.prepared.manifest import left_out
from clops_sweep.data.prepared.quality import quality_tables
from clops_sweep.data.prepared.quality_cells import quality_cells
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.data.scales import scale_notes, spans_of, usual_scale_notes

if TYPE_CHECKING:
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.data.prepared.manifest import Manifest
    from clops_sweep.data.prepared.prepared_folder import PreparedSet

DRAWN = 12
_MOST_ROWS = 500
_STYLE = (
    "body{font:14px sans-serif;margin:1em;overflow-wrap:anywhere}img{max-width:100%;height:auto}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;overflow-wrap:normal}td,th{padding:2px 8px;text-align:right}"
)
_VIEWPORT = '<meta name="viewport" content="width=device-width, initial-scale=1">'


def look(
    prepared: PreparedSet, split_seed: int = 0, encoder: str = "", adapter_of: Callable[[FrameSet], Any] | None = None
) -> str:
    """Return the page: counts by class, person and split, signals, twelve frames of each class, and warnings.

    Args:
        prepared: the data set.
        split_seed: patient split of the counts.
        encoder: name of an encoder, to draw the frames as it takes them as well.
        adapter_of: returns the function that adapts frames [m, channels, samples] to it.
    """
    manifest = prepared.manifest
    leads = DATASETS[manifest.name].leads
    frames = open_frames(manifest.name, prepared_root=prepared.folder.parent, split_seed=split_seed, leads=leads)
    parts = [_title(manifest, frames), _list_of_warnings(prepared, frames)]
    for title, table in _tables(prepared, frames).items():
        parts.append(Markup("<h2>{}</h2>").format(title))
        parts.append(Markup('<div class="wide" tabindex="0">{}</div>').format(Markup(table.to_html())))
    codes = range(len(frames.classes))
    for code in codes:
        parts.append(_drawn(frames, code, "", np.asarray))
    if adapter_of is not None:
        adapt = adapter_of(frames)
        for code in codes:
            parts.append(_drawn(frames, code, f", as {encoder} takes them", adapt))
    head = f'<!DOCTYPE html><html lang="en"><meta charset="utf-8">{_VIEWPORT}<title>{escape(manifest.name)}</title>'
    return f"{head}<style>{_STYLE}</style>{Markup('').join(parts)}</html>\n"


def _title(manifest: Manifest, frames: FrameSet) -> Markup:
    seconds = f"{manifest.frame_seconds:g} s" if manifest.frame_seconds else "unknown duration"
    rate = f"{manifest.sampling_rate:g} Hz" if manifest.sampling_rate else "unknown rate"
    size = f"{len(frames):,} frames of {len(frames.patient_names):,} people"
    shape = f"{frames.channels} x {frames.samples:,} samples"
    sentence = f"{size}: {shape}, {seconds} at {rate}, in {manifest.unit}"
    return Markup("<h1>{}</h1><p>{}</p>").format(manifest.name, sentence)


def _list_of_warnings(prepared: PreparedSet, frames: FrameSet) -> Markup:
    warnings = [*_warnings(prepared, frames), *prepared.manifest.notes]
    items = [Markup("<li>{}</li>").format(sentence) for sentence in warnings or ["none"]]
    return Markup("<h2>Warnings</h2><ul>{}</ul>").format(Markup("").join(items))


def _tables(prepared: PreparedSet, frames: FrameSet) -> dict[str, pd.DataFrame]:
    """Return the tables of the page by title."""
    return {
        "Frames (people) by class": _counts(frames),
        "Signals": _signals(prepared),
        **_quality(prepared),
        "Frames of a recording": _frames_of_a_recording(frames),
        "Left out": _left_out(prepared.manifest),
        f"People (the first {_MOST_ROWS})": _people(frames),
    }


def _signals(prepared: PreparedSet) -> pd.DataFrame:
    ranges = channel_ranges(prepared.manifest, prepared.table)
    return pd.DataFrame(ranges, columns=["channel", "lowest", "highest", "frames with missing samples"])


def _quality(prepared: PreparedSet) -> dict[str, pd.DataFrame]:
    """Return the quality of the recordings of a declared data set, by ward or another domain, by title."""
    if prepared.manifest.info is None:
        return {}
    tables = {}
    for column, of_column in quality_tables(prepared).items():
        headings, rows = quality_cells(column, of_column)
        title = f"People and recordings by {column}" if column else "People and recordings"
        tables[title] = pd.DataFrame(rows, columns=headings)
    return tables


def _frames_of_a_recording(frames: FrameSet) -> pd.DataFrame:
    """Return mean, standard deviation and quartiles of the number of frames of a recording."""
    assert frames.recordings is not None
    counts = pd.Series(np.bincount(frames.recordings), name="frames")
    return counts.describe().to_frame().round(1)


def _left_out(manifest: Manifest) -> pd.DataFrame:
    """Return what preparation left out, and how many recordings, by reason."""
    rows = [(omission.count, omission.sentence(named=True)) for omission in left_out(manifest)]
    rows.append((len(manifest.skipped), "skipped recordings"))
    return pd.DataFrame(rows, columns=["count", "reason"])


def _people(frames: FrameSet) -> pd.DataFrame:
    """Return the frames of each class of the first people, and their part of the split."""
    rows = []
    for name, split, counts in patient_table(frames)[:_MOST_ROWS]:
        rows.append((name, split, *counts))
    return pd.DataFrame(rows, columns=["person", "split", *frames.classes])


def _counts(frames: FrameSet) -> pd.DataFrame:
    """Return the frames and people of each class, and of all, in each part of the split."""
    rows = [*class_rows(frames), total_row(frames)]
    columns: dict[str, list[str]] = {}
    for number, part in enumerate(SPLIT_NAMES):
        columns[part] = [f"{row.frames[number]:,} ({row.patients[number]})" for row in rows]
    return pd.DataFrame(columns, index=[row.name for row in rows])


def _rows_of(frames: FrameSet, code: int) -> np.ndarray:
    has = frames.labels[:, code] > 0 if frames.multi_label else frames.labels == code
    return np.flatnonzero(has)


def _warnings(prepared: PreparedSet, frames: FrameSet) -> Iterator[str]:
    """Yield what an engineer should look at before a sweep."""
    table, manifest = prepared.table, prepared.manifest
    for code, name in enumerate(frames.classes):
        people = np.unique(frames.patients[_rows_of(frames, code)])
        if len(people) == 1:
            yield f"class {name} has one person, {frames.patient_names[people[0]]}"
    low, high = table.statistics[:, 0], table.statistics[:, 1]
    for code, name in enumerate(manifest.lead_names):
        flat = (low == high)[table.leads == code]
        if flat.any():
            yield f"channel {name} is flat in {flat.sum():,} frames of {len(flat):,}"
    keys = pd.DataFrame(np.column_stack([table.leads, table.statistics]))
    first = keys.reset_index().groupby(list(keys))["index"].transform("min").to_numpy()
    others = np.flatnonzero((first != np.arange(len(keys))) & (low < high))
    same = sum(np.array_equal(frames.frames[row], frames.frames[first[row]]) for row in others)
    if same:
        yield f"{same:,} frames of a channel have the samples of an earlier one"
    spans = spans_of(table.statistics, table.gain)
    names = dict(zip(table.recordings.tolist(), table.record_names().tolist(), strict=True))
    of_scales = scale_notes(spans, table.leads, table.recordings, names, manifest.lead_names)
    for note in (*usual_scale_notes(spans, table.leads, manifest.lead_names, manifest.unit), *of_scales):
        if note not in manifest.notes:  # of a data set of a publisher, or prepared by an earlier version
            yield note


def stacked(signal: np.ndarray, is_of_one_unit: bool) -> np.ndarray:
    """Return the heights of channels one above another, from 0 to 1, the first one at the top, [channels, samples].

    Args:
        signal: [channels, samples].
        is_of_one_unit: whether all channels have one scale; otherwise each fills its row.
    """
    channels = len(signal)
    low = signal.min(1, keepdims=True)
    spans = signal.max(1, keepdims=True) - low
    middle = low + spans / 2
    scale = np.full_like(spans, spans.max()) if is_of_one_unit else spans
    rows = np.arange(channels)[::-1, None] + 0.5
    centred = (signal - middle) / np.where(scale > 0, scale, 1)
    return np.asarray((rows + 0.9 * centred) / channels)


def _drawn(frames: FrameSet, code: int, how: str, adapt: Callable[[Any], Any]) -> Markup:
    """Return twelve frames of a class, of as many people as there are, as an image."""
    rows = np.random.default_rng(0).permutation(_rows_of(frames, code))
    _, firsts = np.unique(frames.patients[rows], return_index=True)
    others = np.setdiff1d(np.arange(len(rows)), firsts)
    first_of_each_person = np.sort(firsts)
    chosen = rows[np.concatenate([first_of_each_person, others])[:DRAWN]]
    height = min(24, max(6, 0.75 * frames.channels))
    figure = new_figure(12, height, layout=None)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 4), ylim=(0, 3))
    axes.set_axis_off()
    for position, row in enumerate(chosen):
        left, bottom = position % 4, 2 - position // 4
        stored = frames.signal(np.array([row])).reshape(1, frames.channels, -1)
        signal = adapt(stored)[0]
        low, high = signal.min(), signal.max()
        is_of_one_unit = "," not in frames.unit
        heights = stacked(signal, is_of_one_unit)
        across = np.linspace(left + 0.02, left + 0.98, signal.shape[1])
        for channel, values in enumerate(bottom + 0.05 + 0.8 * heights):
            axes.plot(across, values, lw=0.6, color=colour(channel))
            if position == 0 and 1 < len(signal) == len(frames.lead_names):
                behind = {"facecolor": "white", "edgecolor": "none", "pad": 1}
                axes.text(left + 0.02, values.mean(), frames.lead_names[channel][:8], fontsize=7, bbox=behind)
        person = frames.patient_names[frames.patients[row]][:40]
        unit = frames.unit if is_of_one_unit and not how else ""
        said = f"{person}: {low:.3g} to {high:.3g} {unit}"
        span = float(np.ptp(signal, axis=1).max())
        length = bar_length(span) if unit else 0.0
        if length:
            middle = bottom + 0.05 + 0.8 * 0.5 / len(signal)  # of the lowest channel
            half = 0.5 * length * 0.8 * 0.9 / span / len(signal)
            axes.plot([left + 0.988] * 2, [middle - half, middle + half], color="black", lw=2, solid_capstyle="butt")
            said += f"; bar {length:g} {unit}"
        axes.text(left + 0.02, bottom + 0.9, said, fontsize=8)
    title = frames.classes[code] + how
    image = base64.b64encode(as_png(figure)).decode()
    picture = Markup('<img src="data:image/png;base64,{}" alt="{} frames of class {}" width="1000">')
    return Markup("<h2>{}: {:,} frames</h2>").format(title, len(rows)) + picture.format(image, len(chosen), title)
