"""What every data set is, before any of it is read: names, licences, sources and the paper's settings for it.

This file imports nothing heavy, so that a configuration is validated without numpy, torch or Ray.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

from clops_sweep.errors import UsageError

ScenarioName = str
"""A built-in scenario, or one that a search-space file registers."""

Normalization = Literal["none", "minmax", "zscore"]
Leads = Literal["single", "all"]
"""What an instance is of a recording of several leads: one of them, or all together, as channels of one frame."""


class DataKey(NamedTuple):
    """What decides which frames a run is computed on."""

    dataset: str
    split_seed: int
    normalize: str
    leads: str = "single"
    split: str | None = None
    validation: float | None = None
    encoder: str | None = None
    split_within: str = "people"
    is_adapted: bool = False
    """Whether the frames are signals adapted to the encoder, which runs train further, and not its features."""

    @property
    def view(self) -> dict[str, Any]:
        """How the data set is opened, as `open_frames` takes it; an encoder comes after that."""
        others = ("dataset", "encoder", "is_adapted")
        return {name: value for name, value in self._asdict().items() if name not in others}

    @property
    def words(self) -> str:
        """The data set and the encoder, for messages."""
        done = "adapted to" if self.is_adapted else "encoded by"
        return self.dataset if self.encoder is None else f"{self.dataset}, {done} {self.encoder},"

    @property
    def signals(self) -> DataKey:
        """The frames that the encoder sees."""
        return self._replace(encoder=None, is_adapted=False)


EPOCHS_PER_TASK: Final[Mapping[ScenarioName, int]] = {"class_il": 20, "time_il": 20, "domain_il": 40}
"""The paper's epochs per task of a scenario."""

USUAL_EPOCHS_PER_TASK: Final = 20
"""Of a scenario that the paper does not have."""

LEAD: Final = "lead"
"""The domain by which the paper's Domain-IL goes: every lead of a recording is a task."""

TERMS: Final = 3
"""Tasks of Time-IL, where a data set has no terms of its own."""

PERTURBATION_STD: Final = 0.1
"""A tenth of a millivolt, or of what frames are scaled to: the noise of perturbed inputs where nothing else is said."""


@dataclass(frozen=True)
class DatasetInfo:
    """One data set as a reader of the paper knows it.

    `reader` names the module that declares it, where it is built in. `classes` is how many classes it has, None where
    that is not known before it is prepared; `simultaneous_leads` how many leads of a recording are instances of their
    own, 0 where that is not known either.
    `epochs_per_task` overrides the scenario's usual number of epochs where the data set calls for another.
    `perturbation_std` is the default of that config field in the unit of the frames, for `normalize` = "none": 100 for
    cardiology as released, in raw units.
    `folders` are the names its folder goes by under a data root. `reference_lead` stands for a recording of many
    leads where a scenario wants one instance per recording; None where a recording gives one lead anyway.
    `scenarios` are the built-in ones that it can be used in; class_il_union goes wherever class_il does, subject_il
    everywhere.
    `terms` are the ISO dates that end the terms of Time-IL, empty for terciles of the dates. `leads` is the default of
    that config field, but for domain_il by lead, whose instances are single leads.
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

    def has(self, scenario: ScenarioName) -> bool:
        """Whether the data set goes with a built-in scenario."""
        of_others = scenario == "subject_il" or (scenario == "class_il_union" and "class_il" in self.scenarios)
        return of_others or scenario in self.scenarios

    def task_count(
        self, scenario: ScenarioName, task_classes: Sequence[Any] | None = None, domain: str = LEAD
    ) -> int | None:
        """How many tasks a scenario makes of this data set; None where only the data can tell."""
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
    """How a data set is prepared, where that is not as usual; what built-in data sets beside `Recordings` need.

    Attributes:
        options: of `data prepare --option`, with their defaults; the data set's function takes them by name.
        limits: the least and the greatest value of every option that is a number.
        version: raised when the same files would give other frames than before: older prepared folders count as absent.
        split: from an `Index` and a split seed to the split of each patient [patients] int8, in milliseconds, or None
            where the integer programme (`splits.split_program`) decides.
        select: from what recordings share, the sources, the options and an ordered map to the sources with those frames
            alone that are kept.
        integers: whether samples are stored as int16 instead of float32.
        multi_label: whether labels are [n, C] instead of [n].
        reads_files: whether there are any files to read.
        tolerates_dead_leads: whether a lead without any usable frame is only dropped and counted, as it is common in
            this data set.
        tolerates_repeats: whether a record with the samples of an earlier one is kept and noted, as the publisher ships
            some. Under --on-error skip it is left out all the same.
    """

    options: Mapping[str, OptionValue] = field(default_factory=dict)
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    version: int = 1
    split: Callable[[Any, int], Any] | None = None
    select: Callable[[Any, Any, Mapping[str, Any], Any], Any] | None = None
    integers: bool = False
    multi_label: bool = False
    reads_files: bool = True
    tolerates_dead_leads: bool = False
    tolerates_repeats: bool = False


@dataclass(frozen=True)
class Declared:
    """What stands behind a declared data set.

    Attributes:
        member: the function from the data root to recordings.
        place: the file that declares it.
        files: which files under the data root its frames are made from: paths, folders, or patterns such as `*.csv`.
        fingerprint: SHA-256 of its source code and options: prepared frames with another one are made anew.
        recording: what its recordings have in common, by the names of `Recordings`' arguments.
        rules: how it is prepared, if it is built in.
    """

    member: Any
    place: str
    files: tuple[str, ...] = ()
    fingerprint: str = ""
    recording: Mapping[str, Any] = field(default_factory=dict)
    rules: Rules | None = None


class Catalog(Mapping[str, DatasetInfo]):
    """All data sets by name.

    Attributes:
        built_in: those of this package.
        added: those that have been declared in this process, or are known from stored runs or prepared frames.
    """

    def __init__(self, *built_in: DatasetInfo) -> None:
        self.built_in: Final = {info.name: info for info in built_in}
        self.added: dict[str, DatasetInfo] = {}
        self._declared: dict[str, Declared] = {}

    def __getitem__(self, name: str) -> DatasetInfo:
        return self.added[name] if name in self.added else self.built_in[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self.built_in, *self.added))

    def __len__(self) -> int:
        return len(self.built_in) + len(self.added)

    def declared(self, name: str) -> Declared | None:
        """What stands behind a data set; None where it is known by its name alone (as in a worker)."""
        if name in self.built_in:
            importlib.import_module(self.built_in[name].reader)
        return self._declared.get(name)

    def know(self, name: str, scenario: str) -> None:
        """Sees to it that the config of a stored run can name its data set, also where no file declares it here."""
        if name in self.built_in or name in self._declared:
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

    def register(self, info: DatasetInfo, declared: Declared | None = None) -> None:
        """Adds a data set, or replaces one of the same name that the same file has declared before.

        Without `declared` it is known, so that configs can name it, and can be used where it is prepared, but not be
        prepared.

        Raises:
            UsageError: a built-in data set has the name, or another file has declared one by other code.
        """
        name = info.name
        if name in self.built_in:
            if declared is not None and declared.member.__module__ == self.built_in[name].reader:
                self._declared[name] = declared
                return
            raise UsageError(f"dataset {name!r} is built in; declare yours under another name")
        before = self._declared.get(name)
        if declared is None:
            if before is None:
                self.added[name] = info
            return
        if before is not None and before.place != declared.place and before.fingerprint != declared.fingerprint:
            raise UsageError(
                f"dataset {name!r} is declared in {before.place} and in {declared.place}; give one of them another name"
            )
        self.added[name], self._declared[name] = info, declared


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
        reader="clops_sweep.data.published.mitbih_vfdb",
        epochs_per_task=40,
        folders=("vfdb", "mit-bih-malignant-ventricular-ectopy-database-1.0.0"),
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
