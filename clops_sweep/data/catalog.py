"""The catalogue of data sets: names, licences, sources and the paper's settings.

This module imports neither numpy, torch nor Ray, so that a configuration is validated without them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from clops_sweep.data.files.filters import Filters
from clops_sweep.errors import UsageError

ScenarioName = str
"""A built-in scenario, or one that a search-space file registers."""

Normalization = Literal["none", "minmax", "zscore"]
Leads = Literal["single", "all"]
"""Instances of a recording with several leads: single leads, or all leads as channels of one frame."""


class DataKey(NamedTuple):
    """The settings that determine the frames of a run."""

    dataset: str
    split_seed: int
    normalize: str
    leads: str = "single"
    split: str | None = None
    validation: float | None = None
    encoder: str | None = None
    """Its encoder; empty for a run that is not finished."""
    split_within: str = "people"
    is_adapted: bool = False
    """Whether the frames are signals adapted to the encoder, which runs train further, and not its features."""
    stratify: str | None = None
    """The column of the data whose values every part of the split has in proportion."""
    start_from: str | None = None
    """The stored run whose last model has the initial weights."""

    @property
    def view(self) -> dict[str, Any]:
        """Arguments of `open_frames`; an encoder is applied afterwards."""
        others = ("dataset", "encoder", "is_adapted", "start_from")
        return {name: value for name, value in self._asdict().items() if name not in others}

    @property
    def given(self) -> dict[str, Any]:
        """The attributes that are None by default and are given, such as the fold."""
        optional = [name for name, value in self._field_defaults.items() if value is None]
        return {name: getattr(self, name) for name in optional if getattr(self, name) is not None}

    @property
    def words(self) -> str:
        """Name of the data set and the encoder, for messages."""
        done = "adapted to" if self.is_adapted else "encoded by"
        return self.dataset if self.encoder is None else f"{self.dataset}, {done} {self.encoder or 'a run to come'},"

    @property
    def signals(self) -> DataKey:
        """Key of the frames that the encoder takes."""
        return self._replace(encoder=None, is_adapted=False, start_from=None)

    @property
    def without_start(self) -> DataKey:
        """Key of the same frames for runs that draw their initial weights."""
        return self._replace(start_from=None)


EPOCHS_PER_TASK: Final[Mapping[ScenarioName, int]] = {"class_il": 20, "time_il": 20, "domain_il": 40}
"""Epochs per task of the paper's scenarios. The paper says 20 or 40, but not which scenario has which."""

USUAL_EPOCHS_PER_TASK: Final = 20
"""Epochs per task of a scenario that is not in the paper."""

LEAD: Final = "lead"
"""The domain of the paper's Domain-IL: every lead of a recording is a task."""

TERMS: Final = 3
"""Number of tasks of Time-IL for a data set without declared terms."""

PERTURBATION_STD: Final = 0.1
"""Default noise of perturbed inputs: a tenth of a millivolt, or of the range of scaled frames."""


@dataclass(frozen=True)
class DatasetInfo:
    """Facts and default settings of a data set.

    `reader` names the module that declares one of this package. `classes` is the number of classes, None if unknown
    before preparation; `simultaneous_leads` is the number of leads that are instances, 0 if unknown. `epochs_per_task`
    overrides the scenario's default. `perturbation_std` is the default of that config field in the unit of the frames,
    for `normalize` = "none": 100 for cardiology as released, in raw units. `folders` are the possible names of its
    folder under a data root. `reference_lead` represents a recording of many leads in scenarios with one instance per
    recording; None if recordings have one lead. `scenarios` are the supported built-in scenarios; class_il_union is
    supported wherever class_il is, subject_il always. `terms` are the ISO dates that end the terms of Time-IL, empty
    for terciles of the dates. `leads` is the default of that config field, except for domain_il by lead, whose
    instances are single leads. `people_of` names the data set whose people these are, if their names are the same
    there.
    """

    name: str
    title: str
    licence: str
    source: str
    size: str
    scenarios: tuple[ScenarioName, ...]
    classes: int | None
    batch_size: int
    reader: str = ""
    simultaneous_leads: int = 1
    learning_rate: float = 1e-4
    normalize: Normalization = "none"
    perturbation_std: float = PERTURBATION_STD
    epochs_per_task: int | None = None
    folders: tuple[str, ...] = ()
    reference_lead: str | None = None
    time_il_all_leads: bool = False
    terms: tuple[str, ...] = ()
    leads: Leads = "single"
    people_of: str = ""

    def has(self, scenario: ScenarioName) -> bool:
        """Return whether the data set supports a built-in scenario."""
        of_others = scenario == "subject_il" or (scenario == "class_il_union" and "class_il" in self.scenarios)
        return of_others or scenario in self.scenarios

    def task_count(
        self, scenario: ScenarioName, task_classes: Sequence[Any] | None = None, domain: str = LEAD
    ) -> int | None:
        """Return the number of tasks of a scenario; None if it depends on the data."""
        match scenario:
            case "class_il" | "class_il_union":
                if task_classes is not None:
                    return len(task_classes)
                return None if self.classes is None else self.classes // 2
            case "time_il":
                return len(self.terms) or TERMS
            case "domain_il" if domain == LEAD:
                return self.simultaneous_leads or None
        return None


OptionValue = int | float | str | bool


@dataclass(frozen=True)
class Rules:
    """How recordings become frames, where data sets differ.

    Attributes:
        options: options of `data prepare --option` with defaults; the data set's function receives them by name.
        limits: minimum and maximum of every numeric option.
        version: increased when the same files give other frames than before: older prepared folders count as absent.
        split: function from an `Index` and a split seed to the split of each patient [patients] int8, in milliseconds;
            None to use the integer programme (`splits.split_program`).
        select: function from common facts, sources, options and an ordered map to the sources with selected frames.
        integers: whether samples are stored as int16 instead of float32.
        multi_label: whether labels are [n, C] instead of [n].
        reads_files: whether there are any files to read.
        whole_moments: whether all channels of a moment are kept or dropped together. A flat line is then unusable only
            if all channels are flat, and missing samples are an error, unless the data set drops these windows.
        tolerates_dead_leads: whether a lead without usable frames is dropped and counted, since such leads are common
            in this data set.
        tolerates_repeats: whether a record with the samples of an earlier one is kept and noted, since the publisher
            has some. With --on-error skip it is left out.
    """

    options: Mapping[str, OptionValue] = field(default_factory=dict)
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    version: int = 1
    split: Callable[[Any, int], Any] | None = None
    select: Callable[[Any, Any, Mapping[str, Any], Any], Any] | None = None
    integers: bool = False
    multi_label: bool = False
    reads_files: bool = True
    whole_moments: bool = False
    tolerates_dead_leads: bool = False
    tolerates_repeats: bool = False


@dataclass(frozen=True)
class Packaged:
    """The declaration of a data set of this package.

    Attributes:
        member: the function from the data root and the options to a list of sources.
        classes: names of the classes.
        channels: names of the channels.
        units: unit of the samples.
        rules: how its recordings become frames.
    """

    member: Callable[..., Any]
    classes: tuple[str, ...]
    channels: tuple[str, ...]
    units: str
    rules: Rules


@dataclass(frozen=True)
class Declared:
    """The declaration of a data set in a user's file.

    Attributes:
        member: the function from the data root to recordings.
        place: the file that declares it.
        files: its source files under the data root: paths, folders, or patterns such as `*.csv`.
        fingerprint: SHA-256 of its source code and options; frames with another fingerprint are prepared again.
        recording: values common to its recordings, by argument of `Recordings`.
        filters: filters of its recordings.
        markers: what to do about channels that follow the labels: "refuse" or "keep".
        one_recording_per_person: whether each recording is said to be of another person.
        folds: a table with the fold of each person, under the data root; None if all are dealt.
    """

    member: Any
    place: str
    files: tuple[str, ...] = ()
    fingerprint: str = ""
    recording: Mapping[str, Any] = field(default_factory=dict)
    filters: Filters | None = None
    markers: str = "refuse"
    one_recording_per_person: bool = False
    folds: str | None = None

    @property
    def folder(self) -> Path:
        """The default data root: the folder of the file that declares it, or of the notebook."""
        return Path(self.place).parent


class Catalog(Mapping[str, DatasetInfo]):
    """All data sets by name: those of this package, and those of users.

    Attributes:
        added: data sets declared in this process, or known from stored runs or prepared frames.
    """

    def __init__(self, *infos: DatasetInfo) -> None:
        self._packaged_infos = {info.name: info for info in infos}
        self._packaged: dict[str, Packaged] = {}
        self.added: dict[str, DatasetInfo] = {}
        self._declared: dict[str, Declared] = {}

    def __getitem__(self, name: str) -> DatasetInfo:
        return self.added[name] if name in self.added else self._packaged_infos[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._packaged_infos, *self.added))

    def __len__(self) -> int:
        return len(self._packaged_infos) + len(self.added)

    def needs_file(self, name: str) -> bool:
        """Return whether a command on a data set needs the file that declares it."""
        return name not in self._packaged_infos

    def packaged(self, name: str) -> Packaged | None:
        """Return the declaration of a data set of this package; None for any other."""
        info = self._packaged_infos.get(name)
        if info is None:
            return None
        importlib.import_module(info.reader)
        return self._packaged[name]

    def declared(self, name: str) -> Declared | None:
        """Return a user's declaration of a data set; None if no file of this process declares it, as in a worker."""
        return self._declared.get(name)

    def register_undeclared(self, name: str, scenario: str) -> None:
        """Make a data set known, so that configs of stored runs can name it without its declaration."""
        if name in self._packaged_infos or name in self._declared:
            return
        info = self.added.get(name) or DatasetInfo(
            name=name,
            title=f"{name}, declared by a file that is not at hand",
            licence="not known",
            source="",
            size="",
            scenarios=(),
            classes=None,
            batch_size=16,
            simultaneous_leads=0,
            leads="all",
        )
        if scenario not in info.scenarios:
            scenarios = (*info.scenarios, scenario)
            self.added[name] = replace(info, scenarios=scenarios)

    def add_packaged(self, name: str, declaration: Packaged) -> None:
        """Add the declaration of a data set of this package."""
        self._packaged[name] = declaration

    def register(self, info: DatasetInfo, declared: Declared | None = None) -> None:
        """Add a user's data set, or replace one that the same file declared before.

        Without `declared`, configs can name it and use its prepared frames, but it cannot be prepared.

        Raises:
            UsageError: a built-in data set has the name, or another file declares it with other code.
        """
        name = info.name
        if name in self._packaged_infos:
            raise UsageError(f"dataset {name!r} is built in; declare yours under another name")
        before = self._declared.get(name)
        if declared is None:
            if before is None:
                self.added[name] = info
            return
        if before is not None and before.place != declared.place and before.fingerprint != declared.fingerprint:
            raise UsageError(
                f"dataset {name!r} is declared in {before.place} and, with other code, in {declared.place}; declare it "
                "once, in a module that both import, or give one of them another name"
            )
        self.added[name], self._declared[name] = info, declared

    def forget(self, name: str) -> None:
        """Remove a data set that is not built in, if it is known."""
        self.added.pop(name, None)
        self._declared.pop(name, None)


_SYNTHETIC: Final = DatasetInfo(
    name="synthetic",
    title="Generated ECG of twelve rhythm classes, shipped with the package",
    licence="Apache-2.0",
    source="generated on this machine",
    size="75 MB",
    scenarios=("class_il", "time_il", "domain_il"),
    classes=12,
    batch_size=16,
    reader="clops_sweep.data.synthetic.generated",
    learning_rate=1e-3,
    reference_lead="II",
    simultaneous_leads=12,
    terms=("2019-01-01", "2020-01-01", "2021-01-01"),
)

DATASETS: Final = Catalog(
    _SYNTHETIC,
    DatasetInfo(
        name="mitbih",
        title="MIT-BIH Arrhythmia Database 1.0.0 (Moody and Mark, 2001)",
        licence="ODC-BY 1.0",
        source="https://physionet.org/content/mitdb/1.0.0/",
        size="98 MB",
        scenarios=("class_il",),
        classes=8,
        batch_size=16,
        reader="clops_sweep.data.published.mitbih",
        folders=("mitdb", "mit-bih-arrhythmia-database-1.0.0", "mitbih"),
        epochs_per_task=40,
    ),
    DatasetInfo(
        name="mitbih_vfdb",
        title="MIT-BIH Arrhythmia and Malignant Ventricular Ectopy: a stress test, class and source confounded",
        licence="ODC-BY 1.0",
        source="https://physionet.org/content/vfdb/1.0.0/",
        size="133 MB",
        scenarios=("class_il",),
        classes=10,
        batch_size=16,
        reader="clops_sweep.data.published.mitbih",
        epochs_per_task=40,
        folders=("vfdb", "mit-bih-malignant-ventricular-ectopy-database-1.0.0"),
        people_of="mitbih",
    ),
    DatasetInfo(
        name="mitbih_beats",
        title="MIT-BIH Arrhythmia Database by beat, AAMI classes, DS1 and DS2 of de Chazal et al. (2004)",
        licence="ODC-BY 1.0",
        source="https://physionet.org/content/mitdb/1.0.0/",
        size="98 MB",
        scenarios=("class_il",),
        classes=4,
        batch_size=16,
        reader="clops_sweep.data.published.mitbih",
        learning_rate=1e-3,
        folders=("mitdb", "mit-bih-arrhythmia-database-1.0.0", "mitbih"),
        people_of="mitbih",
    ),
    DatasetInfo(
        name="cardiology",
        title="Cardiologist-level arrhythmia detection, public test set (Hannun et al., 2019)",
        licence="research use, behind a form",
        source="https://irhythm.github.io/cardiol_test_set/",
        size="about 10 MB",
        scenarios=("class_il",),
        classes=12,
        batch_size=16,
        reader="clops_sweep.data.published.cardiology",
        perturbation_std=100.0,
        folders=("cardiology", "cardiol_test_set", "CARDIOL_MAY_2017"),
    ),
    DatasetInfo(
        name="chapman",
        title="Chapman-Shaoxing 12-lead ECG (Zheng et al., 2020)",
        licence="CC BY 4.0",
        source="https://doi.org/10.6084/m9.figshare.c.4560497",
        size="about 6 GB as CSV",
        scenarios=("time_il", "class_il", "domain_il"),
        classes=4,
        batch_size=256,
        reader="clops_sweep.data.published.chapman",
        perturbation_std=100.0,
        folders=("chapman", "ChapmanECG", "chapman_shaoxing"),
        reference_lead="II",
        simultaneous_leads=12,
        time_il_all_leads=True,
        terms=("2018-01-16", "2018-02-09", "2018-12-30"),
    ),
    DatasetInfo(
        name="physionet2020",
        title="CPSC 2018 in the PhysioNet/CinC Challenge 2020 (Perez Alday et al., 2020)",
        licence="CC BY 4.0",
        source="https://physionet.org/content/challenge-2020/1.0.2/",
        size="about 2 GB",
        scenarios=("domain_il",),
        classes=9,
        batch_size=256,
        reader="clops_sweep.data.published.physionet2020",
        normalize="minmax",
        folders=("challenge-2020/training/cpsc_2018", "cpsc2018", "cpsc_2018", "training/cpsc_2018", "Training_WFDB"),
        reference_lead="II",
        simultaneous_leads=12,
    ),
    DatasetInfo(
        name="ptbxl",
        title="PTB-XL (Wagner et al., 2020); its dates are shifted, so that terms are a surrogate",
        licence="CC BY 4.0",
        source="https://physionet.org/content/ptb-xl/1.0.3/",
        size="about 3 GB",
        scenarios=("domain_il", "time_il"),
        classes=5,
        batch_size=16,
        reader="clops_sweep.data.published.ptbxl",
        learning_rate=1e-3,
        normalize="zscore",
        folders=("ptbxl", "ptb-xl", "ptbxl500", "ptb-xl-a-large-publicly-available-electrocardiography-dataset-1.0.3"),
        reference_lead="II",
        simultaneous_leads=12,
    ),
    replace(_SYNTHETIC, name="synthetic_paper", title="Generated ECG at the paper's own split sizes", size="400 MB"),
)
