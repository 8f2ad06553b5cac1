"""`physionet2020`: the CPSC 2018 part of the PhysioNet/CinC Challenge 2020, nine labels on twelve leads.

Perez Alday et al., "Classification of 12-lead ECGs: the PhysioNet/Computing in Cardiology Challenge 2020",
Physiological Measurement 41(12), 2020; Liu et al., "An open access database for evaluating the algorithms of
electrocardiogram rhythm and morphology abnormality detection", JMIHI 8(7), 2018.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from clops_sweep.data.catalog import DATASETS, Rules
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.files.wfdb_records import Header, diagnoses
from clops_sweep.data.published.locate import find_folder, wfdb_files
from clops_sweep.data.published.sex_and_age import sex_and_age
from clops_sweep.data.published.twelve_leads import LEADS, IntegerRecord
from clops_sweep.data.records import Common, Source, Windows
from clops_sweep.data.sets.packaged_set import packaged
from clops_sweep.data.splits import random_split
from clops_sweep.errors import UsageError

SNOMED: Final = {
    "164889003": "AF",
    "270492004": "I-AVB",
    "164909002": "LBBB",
    "426783006": "Normal",
    "284470004": "PAC",
    "164884008": "PVC",
    "427172004": "PVC",
    "59118001": "RBBB",
    "429622005": "STD",
    "164931005": "STE",
}
"""Codes of these labels in headers of later releases."""


CLASSES: Final = ("AF", "I-AVB", "LBBB", "Normal", "PAC", "PVC", "RBBB", "STD", "STE")


class ChallengeRecord(IntegerRecord):
    """Non-overlapping frames of 2500 samples (5 s at 500 Hz) in the publisher's integers; a recording is a patient."""

    def windows(self, common: Common, header: Header) -> Windows:
        """Return every whole frame of every lead, with the labels of the recording as multi-hot [m, 9]."""
        names = [SNOMED.get(diagnosis, diagnosis) for diagnosis in diagnoses(header)]
        for name in names:
            if name not in CLASSES:
                raise UsageError(
                    f"{shorten(header.path)}: label {name!r} is unknown; expected one of {', '.join(CLASSES)}"
                )
        comments = {}
        for comment in header.lines.comments:
            key, separator, value = comment.replace(" ", "").partition(":")
            if separator:
                comments[key] = value
        groups = sex_and_age(comments.get("Sex", ""), comments.get("Age", ""))
        return self.whole(common, header, names, patient=self.record, groups=groups)


@packaged(
    "physionet2020",
    classes=CLASSES,
    channels=LEADS,
    units="mV",
    rules=Rules(
        # gives 4402 / 1100 / 1375 patients of the whole set, as in the paper
        split=lambda index, seed: random_split.test_first(len(index.patient_names), seed),
        integers=True,
        multi_label=True,
    ),
)
def physionet2020(data_root: Path | None) -> list[Source]:
    """Find all records, also in subfolders such as the publisher's g1, g2, ..."""
    folders = DATASETS["physionet2020"].folders
    folder = find_folder(data_root, folders, "physionet2020", ("*.mat", "*/*.mat"), ("A*.mat", "g[0-9]/A*.mat"))
    return [ChallengeRecord((name,), files) for name, files in wfdb_files(folder, ".mat")]
