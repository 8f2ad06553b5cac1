"""Notes of a preparation that name recordings: flat channels, and rates of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clops_sweep import Recording, Recordings, combine, dataset, prepare
from clops_sweep.data.left_out import OfDomain, Reason, sentences, sentences_on_domains
from clops_sweep.data.prepared.manifest import left_out, mostly_dropped
from tests.data.declared_files import forget, waves, write_wfdb

CLASSES = ("N", "AF")


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    forget("ward")
    yield
    forget("ward")


def _notes(folder: Path, *, rates: tuple[int, ...], flat: int | None) -> tuple[str, ...]:
    """Return the notes on a recording of 4 s and two leads for each rate; one has V2 flat in its last 2 s."""

    @dataset("ward", scenarios=("class_il_union",), resample_to=100, window_seconds=1)
    def ward(data_root: Path | None) -> Iterator[Recording]:
        for number, rate in enumerate(rates):
            signal = waves(1, 2, 4 * rate, seed=number)[0]
            if number == flat:
                signal[1, 2 * rate :] = 0
            yield Recording(
                signal, label=number % 2, patient=f"p{number}", name=f"P{number:03}", classes=CLASSES,
                sampling_rate=rate, channels=("I", "V2"), units="mV",
            )  # fmt: skip

    return prepare("ward", prepared_root=folder, data_root=None, workers=1).manifest.notes


def test_a_flat_channel_is_noted_with_its_recordings(tmp_path: Path) -> None:
    assert "channel V2 is flat in 2 frames of 1 recording: P002" in _notes(tmp_path, rates=(100,) * 6, flat=2)


def test_recordings_of_another_rate_are_noted(tmp_path: Path) -> None:
    notes = _notes(tmp_path, rates=(100, 100, 100, 50, 100, 50), flat=None)
    assert "2 recordings of 50 Hz resampled to 100 Hz: P003, P005" in notes
    assert not any("flat" in note for note in notes)


def test_recordings_of_one_rate_have_no_note_on_it(tmp_path: Path) -> None:
    assert not any("resampled" in note for note in _notes(tmp_path, rates=(50,) * 6, flat=None))


@pytest.mark.parametrize("kind", ["npy", "wfdb", "read"])
def test_recordings_left_out_by_mistake_are_named(kind: str, tmp_path: Path) -> None:
    """Two files have no row, and one label is a misspelling; a frequent label is left out on purpose."""
    folder = tmp_path / "files"
    folder.mkdir()
    names = [f"P{number:03}" for number in range(16)]
    for number, name in enumerate(names):
        signal = waves(1, 1, 100, seed=number)[0]
        if kind == "wfdb":
            write_wfdb(folder, name, np.rint(1e3 * signal), 100, ("I",), "uV", [], 1.0)
        else:
            np.save(folder / f"{name}.npy", signal)
    labels = ["LBBB", "NSR"] * 4 + ["LBBBB"] + ["PVC"] * 5
    table = pd.DataFrame({"record": names[:14], "rhythm": labels, "who": names[:14]})
    given = {"table": table, "name": "record", "label": "rhythm", "patient": "who", "classes": ("NSR", "LBBB")}

    @dataset("ward", scenarios=("class_il_union",))
    def ward(data_root: Path | None) -> Recordings:
        if kind == "wfdb":
            return Recordings.from_wfdb(folder, **given)
        read = None if kind == "npy" else lambda path: Recording(np.load(path), channels=("I",), units="mV")
        return Recordings.from_folder(
            folder, "*.npy", read=read, channels=("I",), sampling_rate=100, units="mV", **given
        )

    manifest = prepare("ward", prepared_root=tmp_path, data_root=None, workers=1).manifest
    end = ".npy" if kind != "wfdb" else ""
    assert {each.reason.text: each.names for each in manifest.left_out} == {
        "recordings labelled LBBBB": ("P008",),
        "recordings labelled PVC": ("P009", "P010", "P011", "P012", "P013"),
        "recordings that the table does not list": (f"P014{end}", f"P015{end}"),
    }
    assert sentences(left_out(manifest), named=True) == [
        "1 recording labelled LBBBB (did you mean LBBB?): P008",
        "5 recordings labelled PVC: P009, P010, P011 and 2 more",
        f"2 recordings that the table does not list: P014{end}, P015{end}",
    ]
    assert sentences(left_out(manifest))[0] == "1 recording labelled LBBBB", "without names, only likely ones are asked"
    assert mostly_dropped(manifest, 9) == ""
    assert mostly_dropped(manifest, 8) == (
        "8 of 16 recordings are dropped, 5 of them labelled PVC; the data set uses the classes NSR, LBBB"
    )
    assert not any("PVC" in note or "LBBB" in note or "P014" in note for note in manifest.notes), "they are said once"


def test_combined_data_sets_count_and_name_what_each_leaves_out(tmp_path: Path) -> None:
    for source in ("a", "b"):
        (tmp_path / source).mkdir()
        for number in range(8):
            np.save(
                tmp_path / source / f"{source}{number}.npy", waves(1, 1, 100, seed=number)[0] * (1 + (source == "b"))
            )

    def of(source: str) -> Recordings:
        names = [f"{source}{number}" for number in range(8)]
        labels = ["N", "AF"] * 3 + ["PVC"] * 2
        return Recordings.from_folder(
            tmp_path / source, "*.npy", channels=("I",), sampling_rate=100, units="mV", classes=CLASSES,
            table=pd.DataFrame({"record": names, "label": labels, "who": names}), name="record", label="label",
            patient="who",
        )  # fmt: skip

    @dataset("ward", scenarios=("class_il_union",))
    def ward(data_root: Path | None) -> Recordings:
        return combine({"a": of("a"), "b": of("b")})

    manifest = prepare("ward", prepared_root=tmp_path, data_root=None, workers=1).manifest
    (unused,) = manifest.left_out
    assert unused.reason == Reason("recordings", label="PVC")
    assert (unused.count, unused.names) == (4, ("a/a6", "a/a7", "b/b6", "b/b7"))
    assert unused.domains == {"source": {"a": OfDomain(2, 8), "b": OfDomain(2, 8)}}
    assert sentences_on_domains(manifest.left_out) == [
        "source a: 2 of 8 recordings left out as labelled PVC",
        "source b: 2 of 8 recordings left out as labelled PVC",
    ]
