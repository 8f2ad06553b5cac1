"""The REFORMS checklist of a study: facts from the store are filled in, the rest is left to the authors.

REFORMS (Kapoor et al. 2024, Science Advances 10, eadk3452) has 32 items in eight modules. Numbers and topics are
those of the paper; the wording, in `checklist.md.jinja`, is ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from jinja2 import Environment, StrictUndefined

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.frames import UNKNOWN_PERSON
from clops_sweep.data.left_out import sentences
from clops_sweep.data.prepared.manifest import left_out
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.shortcuts import shortcuts_of
from clops_sweep.errors import several
from clops_sweep.experiment.config import FACTS
from clops_sweep.experiment.metrics import Metric, metric_named
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import headline
from clops_sweep.experiment.provenance import described
from clops_sweep.experiment.spaces.axes import number_in_words
from clops_sweep.planning.searches import Tuning
from clops_sweep.search.records import StudyRecord

from ..tables.tuning import budgets_in_words

_MOST_VALUES = 12


@dataclass(frozen=True)
class Study:
    """The sources of a checklist.

    Attributes:
        results: the store, for display.
        runs: rows of `runs`, finished runs only.
        command: the command that computes all runs, or that shows one of them.
        files: search-space files, for display.
        seal: whether claims were sealed, in words; empty without claims.
        prepared: prepared sets by data set, for those on this machine with the data of the runs.
        studies: records of searches.
        tuned: the tuned spaces with their choices.
        reported: ids of the runs that the files report; None without files, as trials cannot be told from them.
        keeps_predictions: whether predictions of test instances are stored.
    """

    results: str
    runs: pd.DataFrame
    command: str
    files: Sequence[str] = ()
    seal: str = ""
    prepared: Mapping[str, PreparedSet] = field(default_factory=dict)
    studies: Sequence[StudyRecord] = ()
    tuned: Sequence[Tuning] = ()
    reported: Collection[str] | None = None
    keeps_predictions: bool = False

    def values(self, column: str) -> list[str]:
        """Return the values of a column as text, sorted; at most `_MOST_VALUES`, and how many more there are."""
        if column not in self.runs:
            return []
        found = sorted(self.runs[column].dropna().unique(), key=lambda it: (isinstance(it, str), it))
        texts = [number_in_words(it, 6) if isinstance(it, float) else str(it) for it in found]
        return texts[:_MOST_VALUES] + ([f"{len(texts) - _MOST_VALUES} more"] if len(texts) > _MOST_VALUES else [])

    @property
    def changed(self) -> int:
        """Number of runs with local changes to their commit."""
        return int(self.runs["git_dirty"].isin([True]).sum())

    @property
    def plugins(self) -> list[str]:
        """A line for each plug-in."""
        stored = self.runs["plugins"].dropna() if "plugins" in self.runs else ()
        return sorted({line for text in stored for line in described(text)})

    def data(self) -> Iterator[str]:
        """Return a line for each data set: title, licence, source and hash."""
        for name, runs in self.runs.groupby("dataset"):
            prepared = self.prepared.get(str(name))
            info = DATASETS.get(str(name)) if prepared is None else prepared.manifest.dataset_info()
            hashes = ", ".join(sorted(runs["data_hash"].dropna().str[:16].unique()))
            about = f"{info.title}; licence: {info.licence}; " if info else ""
            about += f"from: {info.source}; " if info and info.source else ""
            yield f"{name}: {about}SHA-256 of the prepared frames begins with {hashes}"

    def hours(self) -> tuple[float, float]:
        """Return core-hours and GPU-hours."""
        on_gpu = self.runs["device"].fillna("cpu").astype(str).str.startswith("cuda")
        core, gpu = (float(self.runs["seconds"][mask].sum()) / 3600 for mask in (~on_gpu, on_gpu))
        return core, gpu

    @property
    def knows_report(self) -> bool:
        """Whether the reported runs are known: there are files, and trials of searches only choose."""
        return self.count(of_report=True) > 0 and all(study.is_phase for study in self.studies)

    @property
    def is_chosen(self) -> bool:
        """Whether every choice of a search is known: all tuned methods have one, and no other search is there."""
        choices = [choice for tuned in self.tuned for choice in tuned.choices]
        others = [study for study in self.studies if not study.is_phase]
        return bool(choices) and not others and all(choice.state != "open" for choice in choices)

    def choices(self) -> Iterator[str]:
        """Return a line for each method of a tuned space: its choice and the number of configurations tried."""
        for tuned in self.tuned:
            for choice in tuned.choices:
                name = choice.method or tuned.space.name
                if choice.state == "made":
                    yield f"final choice for {name}: {choice.words}, of {several(choice.trials, 'configuration')}"
                else:
                    known = choice.state == "none"
                    yield f"final choice for {name}: {'given, nothing was tuned' if known else 'open'}"

    def unequal(self) -> Iterator[str]:
        """Return a sentence for each tuned space whose methods were tuned on different numbers of configurations."""
        for tuned in self.tuned:
            trials = {choice.method: choice.trials for choice in tuned.choices if choice.state == "made"}
            if sentence := budgets_in_words(trials):
                yield f"{tuned.space.name}: {sentence}" if len(self.tuned) > 1 else sentence

    def by_method(self, *, of_report: bool) -> str:
        """Count the reported runs, or the others, by method; those of trials alone are the others."""
        is_reported = self.runs["run_id"].isin(self.runs["run_id"] if self.reported is None else self.reported)
        runs = self.runs[is_reported if of_report else ~is_reported]
        counts = runs["strategy"].value_counts().sort_index()
        return ", ".join(f"{method} {count}" for method, count in counts.items())

    def count(self, *, of_report: bool) -> int:
        """Return the number of reported runs, or of the others."""
        reported = int(self.runs["run_id"].isin(self.reported or ()).sum())
        return reported if of_report else len(self.runs) - reported

    def metrics(self) -> list[Metric]:
        """Return the headline metrics."""
        names = dict.fromkeys(name for scenario in self.values("scenario") for name in headline(scenario))
        return list(map(metric_named, names))


def checklist(study: Study) -> str:
    """Return the checklist as Markdown: each item with its number, what is known, and what is open."""
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = Path(__file__).with_suffix(".md.jinja").read_text("utf-8")
    of_training = [name for name, of_field in FACTS.items() if of_field.decides == "training"]
    facts = {"classes": _classes, "samples": _samples, "left_out": _left_out, "shape": _shape, "shortcuts": _shortcuts}
    return (
        environment.from_string(template).render(study=study, several=several, tuned=(*of_training, *OPTIONS), **facts)
        + "\n"
    )


def _classes(prepared: PreparedSet) -> str:
    manifest, labels = prepared.manifest, prepared.table.labels
    having = [labels[:, code] > 0 if labels.ndim == 2 else labels == code for code in range(len(manifest.classes))]
    rows = manifest.rows_per_frame
    counts = (f"{of} {has.sum() // rows:,}" for of, has in zip(manifest.classes, having, strict=True))
    kind = "any set of classes" if manifest.multi_label else "one class"
    return f"each frame has {kind} of {len(manifest.classes)}; frames by class: {', '.join(counts)}"


def _samples(prepared: PreparedSet) -> str:
    manifest = prepared.manifest
    known = not manifest.patient_names[0].startswith(UNKNOWN_PERSON)
    people = f"{len(manifest.patient_names):,}" if known else "unknown"
    return f"{manifest.instances:,} {manifest.frame_words}, of {people} people"


def _left_out(prepared: PreparedSet) -> str:
    manifest = prepared.manifest
    dropped = sentences(left_out(manifest))
    skipped = [f"{several(len(manifest.skipped), 'record')} skipped"] if manifest.skipped else []
    return f"left out when it was prepared: {'; '.join([*dropped, *skipped]) or 'nothing'}"


def _shortcuts(prepared: PreparedSet) -> str:
    manifest = prepared.manifest
    if manifest.info is None:
        return "shortcuts are sought in declared data sets only"
    none = "no class is told by length, missing samples, padding or amplitude"
    return "; ".join(shortcuts_of(manifest.notes)) or none


def _shape(prepared: PreparedSet) -> str:
    manifest = prepared.manifest
    rate = f" at {manifest.sampling_rate:g} Hz" if manifest.sampling_rate else ""
    return f"frames of {manifest.samples:,} samples{rate}"
