"""Recordings that are left out are data: their labels, their wards, and the sentences on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from clops_sweep import Recording, Recordings, dataset, prepare
from clops_sweep.cli.commands import command
from clops_sweep.data.files.hashes import hash_of
from clops_sweep.data.left_out import Reason, sentences, sentences_on_domains
from clops_sweep.data.prepared.manifest import left_out, mostly_dropped, read_manifest
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.preparing.prepare import data_hash
from clops_sweep.errors import UsageError
from tests.data.declared_files import forget, write_wfdb

CLASSES = ["no", "AF"]
ODD = ("recordings labelled AF (did you mean no?)", "3 recordings labelled x: y", "labelled", "AF labelled no")
"""Labels that read like sentences on labels."""


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    forget("ward")
    yield
    forget("ward")


def _table(labels: list[str]) -> pd.DataFrame:
    names = [f"r{number:02}" for number in range(len(labels))]
    return pd.DataFrame({"file": names, "label": labels, "ward": [*"ABC"] * (len(labels) // 3)})


def _declared(folder: Path, table: pd.DataFrame, kind: str = "npy", **more: object) -> None:
    """Declare a data set of one file for each row of a table."""
    for number, name in enumerate(table["file"]):
        signal = np.random.default_rng(number).normal(size=(1, 20))
        if kind == "wfdb":
            write_wfdb(folder, name, np.rint(1e3 * signal), 10, ("I",), "uV", [], 1.0)
        else:
            np.save(folder / f"{name}.npy", signal)
    rows = table.set_index("file").to_dict("index")
    columns = {"table": table, "name": "file", "label": "label", "domains": ["ward"], "classes": CLASSES}

    def of_file(path: Path) -> Recording:
        row = rows[path.stem]
        return Recording(np.load(path), row["label"], domains={"ward": row["ward"]}, channels=["I"], units="mV")

    @dataset("ward", scenarios=("domain_il",), one_recording_per_person=True)
    def ward(data_root: Path | None) -> Recordings:
        if kind == "wfdb":
            return Recordings.from_wfdb(folder, **columns)
        if kind == "read":
            return Recordings.from_folder(folder, "*.npy", read=of_file, classes=CLASSES, sampling_rate=10)
        return Recordings.from_folder(folder, "*.npy", sampling_rate=10, channels=["I"], units="mV", **columns)


def _prepared(folder: Path) -> PreparedSet:
    return prepare("ward", prepared_root=folder / "prepared", data_root=None, workers=1)


def test_labels_that_read_like_sentences_are_kept_and_named_whole(tmp_path: Path) -> None:
    labels = ["no", "AF"] * 6 + [label for label in ODD for _ in range(3)]
    _declared(tmp_path, _table(labels))
    manifest = _prepared(tmp_path).manifest
    assert {omission.reason.label: omission.count for omission in manifest.left_out} == dict.fromkeys(ODD, 3)
    assert all(omission.reason.meant is None for omission in manifest.left_out)
    shown = (
        CliRunner().invoke(command, ["data", "counts", "ward", "--prepared-root", str(tmp_path / "prepared")]).output
    )
    first = {
        omission.reason.label: f"{omission.names[0]}, {omission.names[1]}, {omission.names[2]}"
        for omission in manifest.left_out
    }
    for label in ODD:
        assert f"dropped: 3 recordings labelled {label}"[:40] in shown
        assert first[label] in shown


def test_a_class_without_frames_names_such_a_label_whole(tmp_path: Path) -> None:
    label = "AF labelled no (did you mean no?)"
    table = _table([label] * 6)

    @dataset("ward", scenarios=("domain_il",), one_recording_per_person=True)
    def ward(data_root: Path | None) -> Recordings:
        def of_file(path: Path) -> Recording:
            return Recording(np.load(path), label, channels=["I"], units="mV")

        return Recordings.from_folder(tmp_path, "*.npy", read=of_file, classes=CLASSES, sampling_rate=10)

    for number, name in enumerate(table["file"]):
        np.save(tmp_path / f"{name}.npy", np.random.default_rng(number).normal(size=(1, 20)))
    with pytest.raises(UsageError) as refused:
        _prepared(tmp_path)
    assert str(refused.value).endswith(f"such as classes={{{label!r}: 'no'}}")


@pytest.mark.parametrize("kind", ["npy", "wfdb", "read"])
def test_each_ward_has_its_number_of_recordings(kind: str, tmp_path: Path) -> None:
    labels = ["no", "AF", "AFib", "AF", "no", "no"] * 6
    labels[7:11:3] = ["", "noise"]
    table = _table(labels)
    _declared(tmp_path, table, kind)
    manifest = _prepared(tmp_path).manifest
    expected = pd.crosstab(table["label"], table["ward"])
    totals = table["ward"].value_counts()
    for label in ("AFib", "", "noise"):
        (found,) = (omission for omission in manifest.left_out if omission.reason.label == label)
        wards = {ward: (of_ward.left_out, of_ward.total) for ward, of_ward in found.domains["ward"].items()}
        assert wards == {ward: (many, totals[ward]) for ward, many in expected.loc[label].items() if many}, label
    said = sentences_on_domains(left_out(manifest))
    lost = expected.loc[["AFib", "noise", ""]].sum()
    begins = [f"ward {ward}: {lost[ward]} of {totals[ward]} recordings left out" for ward in lost.index if lost[ward]]
    assert sorted(sentence[: len(begins[0])] for sentence in said) == sorted(begins)
    assert said[0] == "ward C: 6 of 12 recordings left out as labelled AFib"
    mapped = prepare("ward", prepared_root=tmp_path / "prepared", data_root=None).manifest
    assert mapped.left_out == manifest.left_out, "they are read again as they were written"


def test_a_manifest_of_an_earlier_version_is_read_without_labels(tmp_path: Path) -> None:
    _declared(tmp_path, _table(["no", "AF", "AFib"] * 6))
    prepared = _prepared(tmp_path)
    before = data_hash("ward", prepared_root=tmp_path / "prepared")
    file = prepared.folder / "manifest.json"
    entries = json.loads(file.read_text())
    reason = "recordings labelled AFib (did you mean AF?)"
    names = entries["left_out"][0]["names"]
    del entries["left_out"]
    del entries["checksum"]
    entries |= {"dropped": {reason: 6, "flat line": 2}, "names_left_out": {reason: names}}
    file.write_text(json.dumps({**entries, "checksum": hash_of(**entries)}))
    old = read_manifest(prepared.folder)
    assert old is not None
    assert old.dropped == {"flat line": 2}
    assert sentences(left_out(old)) == [f"6 {reason}", "2 frames (flat line)"]
    assert [(omission.reason, omission.names) for omission in old.left_out] == [
        (Reason("recordings", "labelled AFib (did you mean AF?)"), tuple(names))
    ]
    assert mostly_dropped(old, 6) == "6 of 12 recordings are dropped, all labelled AFib (did you mean AF?)"
    assert data_hash("ward", prepared_root=tmp_path / "prepared") == before, "it is not prepared again"
