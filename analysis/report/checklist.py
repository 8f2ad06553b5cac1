"""The REFORMS checklist of a study: facts from the store are filled in, the rest is left to the authors.

REFORMS (Kapoor et al. 2024, Science Advances 10, eadk3452) has 32 items in eight modules. Numbers and topics are
those of the paper; the wording is ours.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from clops_sweep.data.catalog import DATASETS, DatasetInfo
from clops_sweep.data.frames import UNKNOWN_PERSON
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.errors import several
from clops_sweep.experiment.metrics import metric_named
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import headline
from clops_sweep.experiment.provenance import described
from clops_sweep.search.records import StudyRecord

_OPEN = "**To be filled in**"
_MOST_VALUES = 12
_TUNED = ("network", "norm", "optimizer", "learning_rate", "weight_decay", "batch_size", "epochs_per_task")
_SOURCE = "[Kapoor et al., 2024](https://doi.org/10.1126/sciadv.adk3452)"


@dataclass(frozen=True)
class Study:
    """The sources of a checklist.

    Attributes:
        results: the store, for display.
        runs: rows of `runs`, finished runs only.
        files: search-space files, for display.
        seal: whether claims were sealed, in words; empty without claims.
        prepared: prepared sets by data set, for those on this machine with the data of the runs.
        studies: records of searches.
        keeps_predictions: whether predictions of test instances are stored.
    """

    results: str
    runs: pd.DataFrame
    files: Sequence[str] = ()
    seal: str = ""
    prepared: Mapping[str, PreparedSet] = field(default_factory=dict)
    studies: Sequence[StudyRecord] = ()
    keeps_predictions: bool = False

    def values(self, column: str) -> list[str]:
        """Return the values of a column as text, sorted; at most `_MOST_VALUES`, and how many more there are."""
        if column not in self.runs:
            return []
        found = sorted(self.runs[column].dropna().unique(), key=lambda it: (isinstance(it, str), it))
        texts = [f"{it:g}" if isinstance(it, float) else str(it) for it in found]
        return texts[:_MOST_VALUES] + ([f"{len(texts) - _MOST_VALUES} more"] if len(texts) > _MOST_VALUES else [])

    def said(self, **columns: str) -> list[str]:
        """Return "name: values" of each column that has any."""
        found = {name.replace("_", " "): self.values(column) for name, column in columns.items()}
        return [f"{name}: {', '.join(values)}" for name, values in found.items() if values]


@dataclass(frozen=True)
class _Item:
    """An item of the checklist: number, topic, a function of the known facts, and the part left to the authors."""

    number: str
    topic: str
    open: str = "."
    known: Callable[[Study], Iterable[str]] = lambda study: ()


def checklist(study: Study) -> str:
    """Return the checklist as Markdown: each item with its number, what is known, and what is open."""
    lines = [
        "# Reproducibility checklist (REFORMS)",
        "",
        f"32 items in eight modules ({_SOURCE}), in the words of clops-sweep. Filled in from "
        f"{several(len(study.runs), 'finished run')} in `{study.results}`. {_OPEN} marks what the authors have to add.",
    ]
    for number, (module, items) in enumerate(MODULES.items(), 1):
        lines += ["", f"## {number}. {module}", ""]
        for item in items:
            lines.append(f"- **{item.number}** {item.topic}")
            lines += [f"  - {fact}" for fact in item.known(study)]
            if item.open:
                lines.append(f"  - {_OPEN}{item.open if item.open == '.' else f': {item.open}.'}")
    return "\n".join(lines) + "\n"


def _of_data(study: Study, words: Callable[[PreparedSet], str]) -> list[str]:
    """Return a line for each data set."""
    here = study.prepared
    return [
        f"{name}: {words(here[name]) if name in here else 'these data are not prepared on this machine'}"
        for name in study.values("dataset")
    ]


def _data(study: Study) -> list[str]:
    found = []
    for name, runs in study.runs.groupby("dataset"):
        info = _info(study, str(name))
        hashes = ", ".join(sorted(runs["data_hash"].dropna().str[:16].unique()))
        about = f"{info.title}; licence: {info.licence}; from: {info.source}; " if info else ""
        found.append(f"{name}: {about}SHA-256 of the prepared frames begins with {hashes}")
    return found


def _info(study: Study, name: str) -> DatasetInfo | None:
    prepared = study.prepared.get(name)
    return DATASETS.get(name) if prepared is None else prepared.manifest.dataset_info()


def _code(study: Study) -> list[str]:
    plugins = study.runs["plugins"].dropna() if "plugins" in study.runs else ()
    lines = sorted({line for text in plugins for line in described(text)})
    dirty = int(study.runs["git_dirty"].isin([True]).sum())
    changed = [f"{several(dirty, 'run')} with local changes to that commit"] if dirty else []
    return [*study.said(**{"clops-sweep": "package_version"}, commit="git_commit"), *changed, *lines]


def _computing(study: Study) -> list[str]:
    versions = study.said(Python="python", PyTorch="torch", Ray="ray")
    machines = study.said(devices="device", backends="backend", hosts="host")
    on_gpu = study.runs["device"].fillna("cpu").astype(str).str.startswith("cuda")
    core, gpu = (float(study.runs["seconds"][mask].sum()) / 3600 for mask in (~on_gpu, on_gpu))
    return [*versions, *machines, f"{core:.3g} core-hours and {gpu:.3g} GPU-hours, without failed runs"]


def _commands(study: Study) -> list[str]:
    if study.files:
        return [f"`clops-sweep {shlex.join(study.files)}` computes all runs and renders the report"]
    return ["`clops-sweep show RUN_ID` prints the command that repeats a run"]


def _classes(prepared: PreparedSet) -> str:
    manifest, labels = prepared.manifest, prepared.table.labels
    having = [labels[:, code] > 0 if labels.ndim == 2 else labels == code for code in range(len(manifest.classes))]
    counts = (f"{of} {has.sum():,}" for of, has in zip(manifest.classes, having, strict=True))
    kind = "any set of classes" if manifest.multi_label else "one class"
    return f"each frame has {kind} of {len(manifest.classes)}; frames by class: {', '.join(counts)}"


def _samples(prepared: PreparedSet) -> str:
    manifest = prepared.manifest
    known = not manifest.patient_names[0].startswith(UNKNOWN_PERSON)
    return f"{manifest.frames:,} frames of {f'{len(manifest.patient_names):,}' if known else 'unknown'} people"


def _left_out(prepared: PreparedSet) -> str:
    manifest = prepared.manifest
    dropped = [f"{reason} {count:,}" for reason, count in manifest.dropped.items() if count]
    dropped = [f"frames by reason: {', '.join(dropped)}"] if dropped else []
    skipped = [f"{several(len(manifest.skipped), 'record')} skipped"] if manifest.skipped else []
    return f"left out when it was prepared: {'; '.join([*dropped, *skipped]) or 'nothing'}"


def _transformations(study: Study) -> list[str]:
    def shape(prepared: PreparedSet) -> str:
        manifest = prepared.manifest
        rate = f" at {manifest.sampling_rate:g} Hz" if manifest.sampling_rate else ""
        return f"frames of {manifest.samples:,} samples{rate}"

    scaled = study.said(leads="leads", normalisation_of_each_frame="normalize", class_weights="class_weights")
    return [*_of_data(study, shape), *scaled, *study.said(augmentation="augment", encoder="encoder")]


def _models(study: Study) -> list[str]:
    models = study.said(networks="network", methods="strategy", heads="head", trainable_parameters="parameters")
    training = study.said(
        optimisers="optimizer",
        learning_rates="learning_rate",
        batch_sizes="batch_size",
        epochs_per_task="epochs_per_task",
    )
    return [*models, *training, "loss: cross-entropy of a softmax, or of a sigmoid for each class, by scenario"]


def _evaluation(study: Study) -> list[str]:
    splits = study.said(scenarios="scenario", splits="split", split_seeds="split_seed", split_within="split_within")
    people = study.said(train="patients_train", validation="patients_validation", test="patients_test")
    count = several(study.runs["split_hash"].nunique(), "distinct partition")
    return [*splits, f"{count} of the people", *(f"people in {it}" for it in people), *study.said(seeds="seed")]


def _selection(study: Study) -> list[str]:
    found = ["the network after the last epoch of the last task is evaluated"]
    if patience := study.values("early_stopping"):
        found = [f"early stopping on the validation loss of the task, patience {', '.join(patience)}"]
    return [*found, *(["searches chose among trials: see 5e"] if study.studies else [])]


def _tuning(study: Study) -> list[str]:
    """Return the fields and options with several values, and the trials of searches."""
    names = [name for name in (*_TUNED, *OPTIONS) if len(study.values(name)) > 1]
    found = [f"values of {name} that were run: {', '.join(study.values(name))}" for name in names]
    for it in study.studies:
        aims = ", ".join(f"{name} ({direction})" for name, direction in it.objectives.items())
        found.append(f"search {it.name}: {several(len(it.trials), 'trial')}; objectives: {aims}")
    return found


def _baselines(study: Study) -> list[str]:
    counts = study.runs["strategy"].value_counts().sort_index()
    return ["runs by method: " + ", ".join(f"{name} {count}" for name, count in counts.items())]


def _metrics(study: Study) -> list[str]:
    names = dict.fromkeys(name for scenario in study.values("scenario") for name in headline(scenario))
    return [f"{it.plain}: {it.formula}" for it in map(metric_named, names)]


def _uncertainty(study: Study) -> list[str]:
    more = ["intervals over test patients: patients are drawn again from the stored predictions"]
    splits, seeds = study.runs["split_hash"].nunique(), study.runs["seed"].nunique()
    return [
        f"spread over {several(splits, 'partition')} of the people and {several(seeds, 'seed')}",
        "95 % intervals of differences: Student's t, with the overlap of training sets (Nadeau and Bengio 2003)",
        *(more if study.keeps_predictions else []),
    ]


def _tests(study: Study) -> list[str]:
    found = [
        "corrected resampled t-test over partitions of the people, at least three; Holm's method over the claims",
        "assumed: differences over partitions are about normal, and their correlation is that of the overlap",
    ]
    return [*found, *([f"claims of the search-space file: {study.seal}"] if study.seal else [])]


def _unseen(study: Study) -> list[str]:
    column = study.runs.get("unseen_auc")
    return [] if column is None or column.dropna().empty else ["`unseen_*` columns: people in no task were evaluated"]


def _inputs(study: Study) -> list[str]:
    encoders = [f"{name}, SHA-256 {it[:16]}" for name, it in _pairs(study, "encoder", "encoder_hash")]
    return [f"inputs: features by encoder {it}" for it in encoders] or [
        "inputs: the samples of the signals, nothing else"
    ]


def _pairs(study: Study, *columns: str) -> list[tuple[str, ...]]:
    return sorted(set(study.runs[list(columns)].dropna().astype(str).itertuples(index=False, name=None)))


def _always(*facts: str) -> Callable[[Study], Iterable[str]]:
    """Return a function of facts that hold for every study."""
    return lambda study: facts


MODULES: Mapping[str, Sequence[_Item]] = {
    "Study goals": (
        _Item("1a", "Population or distribution that the claims are about"),
        _Item("1b", "Reasons for this population"),
        _Item("1c", "Reasons for using machine learning"),
    ),
    "Computational reproducibility": (
        _Item("2a", "Data sets, each with a link or DOI of its version", "link or DOI of this version", _data),
        _Item("2b", "Code, with a link or DOI of its version", "link or DOI of the archived code", _code),
        _Item("2c", "Machines and software", "processors, GPU models, memory and operating system", _computing),
        _Item("2d", "Instructions that lead from data and code to the results", "where they are", _commands),
        _Item("2e", "Script that computes every reported result", "where it is", _commands),
    ),
    "Data quality": (
        _Item("3a", "Origin of the data: who recorded and labelled them, when, and how"),
        _Item("3b", "Sampling frame: where the sample was drawn from"),
        _Item("3c", "Reasons why the data suit the task"),
        _Item("3d", "Outcome, and how it is distributed", "", lambda study: _of_data(study, _classes)),
        _Item("3e", "Size of the sample", "", lambda study: _of_data(study, _samples)),
        _Item("3f", "Missing data, by class", "missing data by class", lambda study: _of_data(study, _left_out)),
        _Item("3g", "Reasons why the sample represents the population of 1a"),
    ),
    "Data preprocessing": (
        _Item("4a", "Samples that were left out, and why", "why", lambda study: _of_data(study, _left_out)),
        _Item(
            "4b",
            "Impossible or corrupt samples",
            "checks beyond these",
            _always(
                "frames whose channels are all flat are left out and counted; a record that cannot be read, or has "
                "samples that are missing or not finite, is refused, or left out with `--on-error skip`"
            ),
        ),
        _Item(
            "4c",
            "Every step from raw data to the input of the model",
            "steps before the published files",
            _transformations,
        ),
    ),
    "Modeling": (
        _Item("5a", "Every model: inputs, type and loss", "", _models),
        _Item("5b", "Reasons for these types of models"),
        _Item("5c", "Evaluation: training and test sets, or folds", "", _evaluation),
        _Item("5d", "How the reported models were chosen", "which of the runs are reported, and why", _selection),
        _Item("5e", "Tuning of hyperparameters: values, method and final choice", "the final choice", _tuning),
        _Item("5f", "Reasons why the baselines are appropriate and fairly tuned", "the reasons", _baselines),
    ),
    "Data leakage": (
        _Item(
            "6a",
            "Preprocessing and training that see training data alone",
            "choices that were made by looking at test results",
            _always("normalisation is of each frame by itself; networks are trained on the training set alone"),
        ),
        _Item(
            "6b",
            "Dependent or duplicate samples between training and test",
            "people or recordings that appear under several names",
            _always(
                "each launch refuses data in which a person is in two of training, validation and test; where a "
                "scenario lets people recur, it refuses samples in two of them",
                "recordings with the same samples are found when data are prepared",
            ),
        ),
        _Item("6c", "Inputs that are legitimate for the task", "the reasons", _inputs),
    ),
    "Metrics and uncertainty": (
        _Item("7a", "Metrics, and why they suit the task", "why they suit the task", _metrics),
        _Item("7b", "Uncertainty, and how it is computed", "", _uncertainty),
        _Item("7c", "Statistical tests, and whether their assumptions hold", "whether they hold here", _tests),
    ),
    "Generalizability and limitations": (
        _Item("8a", "Evidence beyond this sample: other populations, places or devices", known=_unseen),
        _Item("8b", "Settings in which the findings are not expected to hold"),
    ),
}
