"""Facts that files state beside the samples, such as rates and units: read rightly, noted, or refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import edfio
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io

from clops_sweep import Recordings, from_edf, from_mat, from_npz
from clops_sweep.data.declared.formats.edf_pieces import INTERRUPTED
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.left_out import sentences
from clops_sweep.data.prepared.counts import without_class
from clops_sweep.data.prepared.manifest import Manifest
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, waves, write_notes, write_wfdb

X = waves(8, 2, 120).astype(float)


def prepared(folder: Path, call: str) -> tuple[FrameSet, Manifest]:
    """Return frames and manifest of `Recordings.CALL`."""
    declare(
        folder / "space.py",
        f"""
        from clops_sweep import from_edf

        @dataset("own", one_recording_per_person=True)
        def own(data_root):
            return Recordings.{call}
        """,
    )
    manifest = prepare("own", prepared_root=folder / "prepared", data_root=folder, workers=1).manifest
    return open_frames("own", prepared_root=folder / "prepared", leads="all"), manifest


def table(folder: Path, labels: Sequence[str] = ("A", "B") * 4) -> None:
    rows = [f"r{number},{label}" for number, label in enumerate(labels)]
    (folder / "labels.csv").write_text("\n".join(["name,label", *rows]))


OF_TABLE = 'table="labels.csv", name="name", label="label"'


def from_folder(folder: Path, write: Callable[[Path, np.ndarray], object], ending: str, more: str = "") -> Any:
    """Return frames and manifest of files that a function writes."""
    for number, signal in enumerate(X):
        write(folder / f"r{number}.{ending}", signal)
    table(folder)
    call = f'from_folder(data_root, "r*.{ending}", {OF_TABLE}, sampling_rate=100, units="mV"{more})'
    return prepared(folder, call)


def csv(path: Path, lines: Sequence[str]) -> None:
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("target", ["", ", resample_to=64"])
def test_intervals_in_samples_are_those_of_the_file_also_after_resampling(target: str, tmp_path: Path) -> None:
    rows = []
    for number in range(4):
        level = np.r_[np.zeros(1280), np.full(1280, 100.0), np.zeros(2560)]
        level += np.random.default_rng(number).normal(0, 1, len(level))
        signal = edfio.EdfSignal(level, 128, label="EEG", physical_dimension="uV", physical_range=(-200, 200))
        edfio.Edf([signal]).write(tmp_path / f"r{number}.edf")
        rows += [f"r{number},0,1280,W", f"r{number},1280,2560,N"]
    csv(tmp_path / "stages.csv", ["name,start,end,label", *rows])
    frames, _ = prepared(
        tmp_path,
        'from_folder(data_root, "*.edf", read=from_edf, table="stages.csv", name="name", label="label", start="start", '
        f'end="end", interval_unit="samples", classes=("W", "N"), window_seconds=5{target})',
    )
    means = frames.signal(np.arange(len(frames))).mean(-1)
    np.testing.assert_allclose(means, frames.labels * 100, atol=2)
    assert len(frames) == 16


def test_intervals_in_samples_beside_timestamps_are_refused(tmp_path: Path) -> None:
    for number in range(4):
        np.save(tmp_path / f"r{number}.npy", X[number])
    csv(
        tmp_path / "stages.csv",
        ["name,start,end,label", *(f"r{n},{k},{k + 60},{k}" for n in range(4) for k in (0, 60))],
    )
    sentence = "start: is in samples, and timestamps bring the samples"
    declare(
        tmp_path / "space.py",
        """
        def one(path):
            return Recording(np.load(path), timestamps=np.arange(120) / 100)

        @dataset("own", one_recording_per_person=True)
        def own(data_root):
            return Recordings.from_folder(
                data_root, "*.npy", read=one, table="stages.csv", name="name", label="label", start="start", end="end",
                interval_unit="samples", channels=("I", "II"), units="mV", sampling_rate=100, window_seconds=0.5,
            )
        """,
    )
    with pytest.raises(UsageError, match=sentence):
        prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)


def records(folder: Path, *comments: str) -> None:
    """Write WFDB records with comments, in which {} is the label."""
    for number, signal in enumerate(X):
        written = [comment.format("AB"[number % 2]) for comment in comments]
        write_wfdb(folder, f"r{number}", 1000 * signal, 100, channels=("I", "II"), comments=written)


def test_two_comments_of_one_name_are_refused_if_they_differ(tmp_path: Path) -> None:
    records(tmp_path, "Dx: {}", "Dx: C", "Age: 7", "Age: 7")
    with pytest.raises(UsageError, match=r"r0\.hea: has 2 comments '#Dx: \.\.\.', which label names, with 'A' and 'C'"):
        Recordings.from_wfdb(tmp_path, label="#Dx")


def test_two_comments_of_one_name_are_several_labels(tmp_path: Path) -> None:
    records(tmp_path, "Dx: {}", "Dx: C", "Age: 7", "Age: 7")
    found = Recordings.from_wfdb(tmp_path, label="#Dx", separator=",", groups={"age": "#Age"})
    assert found.columns.labels is not None
    assert found.columns.labels.tolist() == [[1, 0, 1], [0, 1, 1]] * 4
    assert set(found.columns.groups["age"]) == {"7"}


def test_annotations_after_the_end_of_a_record_are_noted(tmp_path: Path) -> None:
    for number in range(4):
        write_wfdb(tmp_path, f"r{number}", 1000 * X[number][:1], 100)
        write_notes(tmp_path, f"r{number}", [0, 60, 500, 600], ["A", "B", "A", "B"])
    frames, manifest = prepared(tmp_path, 'from_wfdb(data_root, label=".atr", classes=("A", "B"), window_seconds=0.5)')
    assert frames.labels.tolist() == [0, 1] * 4
    assert any("2 of its 4 annotations lie after the end of the signal" in note for note in manifest.notes)


@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_marks_between_thousands_are_refused(separator: str, tmp_path: Path) -> None:
    def write(path: Path, signal: np.ndarray) -> None:
        numbers = [[f"{int(1000 + 100 * value):,}" for value in row] for row in signal.T]
        quote = '"' if separator == "," else ""
        csv(path, ["ecg" + separator + "ppg", *(separator.join(f"{quote}{n}{quote}" for n in row) for row in numbers)])

    sentence = r"column 'ecg': '1,\d{3}' may be 1\d{3}, with a comma between thousands .*; write numbers without marks"
    with pytest.raises(UsageError, match=sentence):
        from_folder(tmp_path, write, "csv")


def test_points_between_thousands_are_refused_but_decimals_are_read(tmp_path: Path) -> None:
    def write(path: Path, signal: np.ndarray) -> None:
        csv(
            path,
            ["ecg\tppg", *("\t".join(f"{int(1000 + 100 * v):,}".replace(",", ".") for v in row) for row in signal.T)],
        )

    with pytest.raises(UsageError, match=r"'1\.\d{3}' may be 1\d{3}, with a point between thousands"):
        from_folder(tmp_path, write, "csv")
    frames, _ = from_folder(tmp_path, write, "csv", ', decimal="."')
    assert frames.signal(np.arange(len(frames))).max() < 1000


def test_a_comma_that_may_be_either_is_noted(tmp_path: Path) -> None:
    def write(path: Path, signal: np.ndarray) -> None:
        csv(
            path,
            ["ecg;ppg", *(";".join(f"{36 + value / 10:.3f}".replace(".", ",") for value in row) for row in signal.T)],
        )

    frames, manifest = from_folder(tmp_path, write, "csv")
    np.testing.assert_allclose(frames.signal(np.arange(8)), 36 + X / 10, atol=1e-3)
    assert any("column 'ecg': the comma is read as decimal" in note for note in manifest.notes)


@pytest.mark.parametrize("unit", ["onset", "start"])
def test_marks_between_thousands_in_times_are_refused(unit: str, tmp_path: Path) -> None:
    signal = edfio.EdfSignal(np.zeros(200_000), 100, label="EEG", physical_dimension="uV", physical_range=(-200, 200))
    edfio.Edf([signal]).write(tmp_path / "r0.edf")
    times = ["30", "60", "1,010", "1,200", "1,500"]
    if unit == "onset":
        csv(tmp_path / "e.tsv", ["onset\tduration\ttrial_type", *(f"{onset}\t30\tW" for onset in times)])
        with pytest.raises(UsageError, match=r"e\.tsv: onset: '1,010' may be 1010, with a comma"):
            from_edf(tmp_path / "r0.edf", annotations=tmp_path / "e.tsv")
        return
    csv(tmp_path / "e.csv", ["name;start;label", *(f"r0;{start};W" for start in times)])
    with pytest.raises(UsageError, match=r"e\.csv: start: '1,010' may be 1010, with a comma"):
        Recordings.from_folder(
            tmp_path, "*.edf", read=from_edf, table="e.csv", name="name", label="label", start="start",
            classes=("W", "N"), window_seconds=30, until_next=True,
        )  # fmt: skip


@pytest.mark.parametrize(
    "comment",
    ["# fs: 250", "# Fs = 250 Hz", "# sfreq: 0.25 kHz", "# sampling interval: 4 ms", "# Sample interval (us): 4000"],
)
def test_a_rate_in_a_comment_is_compared(comment: str, tmp_path: Path) -> None:
    def write(path: Path, signal: np.ndarray) -> None:
        csv(path, [comment, "ecg,ppg", *(",".join(map(str, row)) for row in signal.T)])

    with pytest.raises(UsageError, match="its header says 250 samples a second; expected sampling_rate=250, not 100"):
        from_folder(tmp_path, write, "csv")


def test_an_interval_in_a_comment_is_the_same_rate(tmp_path: Path) -> None:
    def write(path: Path, signal: np.ndarray) -> None:
        csv(path, ["# sampling interval: 10 ms", "ecg,ppg", *(",".join(map(str, row)) for row in signal.T)])

    frames, _ = from_folder(tmp_path, write, "csv")
    np.testing.assert_allclose(frames.signal(np.arange(8)), X, rtol=1e-6)


def _with_attributes(path: Path, signal: np.ndarray) -> None:
    frame = pd.DataFrame(signal.T, columns=["ecg", "ppg"])
    frame.attrs["sampling_rate"] = 250
    frame.to_parquet(path)


def _with_unit(path: Path, signal: np.ndarray) -> None:
    names = [("ecg", {"unit": "uV"}), ("ppg", {"unit": "mV"})]
    schema = pa.schema([pa.field(name, pa.float64(), metadata=metadata) for name, metadata in names])
    pq.write_table(pa.Table.from_arrays([pa.array(row) for row in signal], schema=schema), path)


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (_with_attributes, "its header says 250 samples a second; expected sampling_rate=250, not 100"),
        (_with_unit, "column 'ecg' is in uV, not in mV"),
    ],
)
def test_rate_and_unit_in_the_metadata_of_parquet_are_compared(
    write: Callable[[Path, np.ndarray], None], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=sentence):
        from_folder(tmp_path, write, "parquet")


def hdf5(folder: Path, attributes: dict[str, Any], place: str = "r{}/ecg", more: str = "") -> Manifest:
    with h5py.File(folder / "a.h5", "w") as file:
        for number, signal in enumerate(X):
            file[f"r{number}/ecg"] = signal
            file[place.format(number)].attrs.update(attributes)
    table(folder)
    call = f'from_hdf5(data_root, "a.h5", signals="*/ecg", channels=("I", "II"), units="mV", sampling_rate=100{more}, '
    return prepared(folder, f"{call}{OF_TABLE})")[1]


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"scale_factor": [0.001, 0.005]}, r"says scale_factor = \[0\.001, 0\.005\]; give gain=\[0\.001, 0\.005\]"),
        ({"scale_factor": [0.001, 0.001, 0.001]}, r"says scale_factor = \[0\.001, 0\.001, 0\.001\]"),
        ({"add_offset": [0.0, 3.0]}, r"says add_offset = \[0, 3\]"),
        ({"units": ["mV", "uV"]}, "says that it is in uV, not in mV"),
        ({"unit": "uV"}, "says that it is in uV, not in mV"),
        ({"sampling_rate": "250 Hz"}, "says sampling_rate = 250; expected sampling_rate=250, not 100"),
        ({"SampleRate": 250}, "says SampleRate = 250"),
        ({"Fs": b"250"}, "says Fs = 250"),
    ],
)
def test_attributes_by_channel_and_of_other_spellings_are_compared(
    attributes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=sentence):
        hdf5(tmp_path, attributes)


def test_a_scale_of_each_channel_that_is_the_gain_is_right(tmp_path: Path) -> None:
    notes = hdf5(tmp_path, {"scale_factor": [0.001, 0.005], "units": "uV"}, more=", gain=[0.001, 0.005]").notes
    assert not any("group" in note for note in notes)


@pytest.mark.parametrize("place", ["r{}", "/"])
@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"fs": 250}, "8 recordings: its group says fs = 250, and sampling_rate is 100: check it"),
        ({"units": "uV"}, "8 recordings: its group says that it is in uV, and units is mV: check it"),
    ],
)
def test_another_rate_or_unit_of_a_group_is_noted(
    place: str, attributes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    assert sentence in hdf5(tmp_path, attributes, place).notes


def test_a_group_that_agrees_or_does_not_count_has_no_note(tmp_path: Path) -> None:
    notes = hdf5(tmp_path, {"fs": 100, "units": "mV"}, "r{}").notes
    assert not any("group" in note for note in notes)


@pytest.mark.parametrize("variable", ["fs", "Fs", "sfreq", "sampling_rate"])
def test_another_rate_among_the_variables_of_a_file_is_noted(variable: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", signal=X[0], **{variable: 250})
    scipy.io.savemat(tmp_path / "a.mat", {"ecg": {"data": X[0], variable: 250.0}})
    said = [f"its variable {variable} is 250, and sampling_rate is 100: check it"]
    assert from_npz(tmp_path / "a.npz", sampling_rate=100).notes == said
    assert from_mat(tmp_path / "a.mat", "ecg.data", sampling_rate=100).notes == said
    assert from_npz(tmp_path / "a.npz", sampling_rate=250).notes == []
    assert from_npz(tmp_path / "a.npz").notes == []
    assert from_npz(tmp_path / "a.npz", sampling_rate=variable).sampling_rate == 250


def test_empty_cells_of_columns_of_labels_are_counted(tmp_path: Path) -> None:
    rows = [f"r{number},{'1,0' if number % 2 else ',1'}" for number in range(8)]
    csv(tmp_path / "labels.csv", ["name,A,B", *rows])
    for number, signal in enumerate(X):
        np.save(tmp_path / f"r{number}.npy", signal)
    call = 'from_folder(data_root, "*.npy", table="labels.csv", name="name", label=["A", "B"], sampling_rate=100, '
    frames, manifest = prepared(tmp_path, f'{call}units="mV")')
    assert frames.labels.tolist() == [1, 0] * 4
    assert sentences(manifest.left_out) == ["4 empty cells of the columns of labels, which count as 0"]


def test_labels_that_differ_in_leading_zeros_are_refused(tmp_path: Path) -> None:
    table(tmp_path, ["1", "2", "01", "02", "1", "2", "1", "2"])
    for number, signal in enumerate(X):
        np.save(tmp_path / f"r{number}.npy", signal)
    with pytest.raises(UsageError, match="label: '01' and '1' differ only in leading zeros; give classes="):
        Recordings.from_folder(
            tmp_path, "*.npy", table="labels.csv", name="name", label="label", sampling_rate=100, units="mV"
        )


def test_numbers_as_labels_of_classes_that_are_other_numbers_are_refused(tmp_path: Path) -> None:
    sentence = "label.*: 0 may be the class '0', or class '1' at position 0; give names as text"
    common: dict[str, Any] = {"channels": ("I", "II"), "units": "mV", "sampling_rate": 100}
    with pytest.raises(UsageError, match=sentence):
        Recordings(X, labels=np.arange(8) % 2, classes=("1", "0"), patients=None, **common)
    named = Recordings(X, labels=[str(n % 2) for n in range(8)], classes=("1", "0"), patients=None, **common)
    assert named.columns.labels is not None
    assert named.columns.labels.tolist() == [1, 0] * 4
    for number, signal in enumerate(X):
        np.savez(tmp_path / f"r{number}.npz", signal=signal, label=number % 2)
    for read in ("from_folder(data_root, '*.npz', read=one, classes=('1', '0'))", "one"):
        body = f"Recordings.{read}" if read != "one" else "map(one, sorted(data_root.glob('*.npz')))"
        classes = "" if read != "one" else ", classes=('1', '0')"
        declare(
            tmp_path / f"space{len(read)}.py",
            f"""
            from clops_sweep import from_npz

            def one(path):
                return from_npz(path, label="label", sampling_rate=100, channels=("I", "II"), units="mV")

            @dataset("own{len(read)}", one_recording_per_person=True{classes})
            def own(data_root):
                return {body}
            """,
        )
        with pytest.raises(UsageError, match=sentence):
            prepare(f"own{len(read)}", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)


def test_one_missing_value_in_each_of_several_recordings_is_noted(tmp_path: Path) -> None:
    def write(path: Path, signal: np.ndarray) -> None:
        signal = signal.copy()
        signal[0, 5] = -9999
        csv(path, ["ecg,ppg", *(",".join(map(str, row)) for row in signal.T)])

    _, manifest = from_folder(tmp_path, write, "csv")
    assert any("channel ecg: 8 samples of 8 recordings are -9999" in note for note in manifest.notes)


def test_annotations_that_differ_in_case_from_a_class_are_noted(tmp_path: Path) -> None:
    for number in range(4):
        write_wfdb(tmp_path, f"r{number}", 1000 * X[number][:1], 100)
        write_notes(tmp_path, f"r{number}", [0, 60], ["(N" if number else "(n", "(AF"])
    frames, manifest = prepared(
        tmp_path, 'from_wfdb(data_root, label=".atr", classes=("(N", "(AF"), window_seconds=0.5)'
    )
    assert frames.labels.tolist() == [1, 0, 1, 0, 1, 0, 1]
    assert any("1 segment labelled (n left out (did you mean (N?)" in note for note in manifest.notes)


def test_a_comment_for_groups_that_no_header_has_is_refused(tmp_path: Path) -> None:
    records(tmp_path, "Dx: {}", "Age: 7")
    sentence = r"r0\.hea: has no comment '#age: \.\.\.', which groups\['age'\] names; did you mean '#Age'\?"
    with pytest.raises(UsageError, match=sentence):
        Recordings.from_wfdb(tmp_path, label="#Dx", groups={"age": "#age"})


def test_whole_numbers_among_several_labels_have_no_decimals(tmp_path: Path) -> None:
    table(tmp_path, ["1;2", "1.0;2.0", "1", "2.0"] * 2)
    for number, signal in enumerate(X):
        np.save(tmp_path / f"r{number}.npy", signal)
    call = f'from_folder(data_root, "*.npy", {OF_TABLE}, separator=";", sampling_rate=100, units="mV")'
    frames, manifest = prepared(tmp_path, call)
    assert frames.classes == ("1", "2")
    assert frames.labels.tolist() == [[1, 1], [1, 1], [1, 0], [0, 1]] * 2
    assert manifest.dropped == {}


def npz_files(folder: Path, one: str, options: str = "", swapped: bool = False) -> tuple[FrameSet, Manifest]:
    """Return frames and manifest of NPZ files that an expression of `x` and the number `n` makes recordings."""
    for number, signal in enumerate(X):
        np.savez(folder / f"r{number}.npz", signal=signal[::-1] if swapped and number == 3 else signal)
    declare(
        folder / "space.py",
        f"""
        def one(path):
            n, x = int(path.stem[1:]), np.load(path)["signal"]
            names = ("II", "I") if {swapped} and n == 3 else ("I", "II")
            return Recording(x, "AB"[n % 2], {one})

        @dataset("own", one_recording_per_person=True)
        def own(data_root):
            return Recordings.from_folder(data_root, "r*.npz", read=one, classes=("A", "B"){options})
        """,
    )
    manifest = prepare("own", prepared_root=folder / "prepared", data_root=folder, workers=1).manifest
    return open_frames("own", prepared_root=folder / "prepared", leads="all"), manifest


ONE = 'channels=names, units="mV", sampling_rate=100'


def test_channels_by_position_that_moved_are_refused_and_renamed_ones_noted(tmp_path: Path) -> None:
    sentence = r"r3\.npz: channels: position 0 has 'II' where the first recording has 'I', which is at position 1 here"
    with pytest.raises(UsageError, match=sentence):
        npz_files(tmp_path, ONE, ", channels=[0]", swapped=True)
    renamed = ONE.replace("names", '("I", "II") if n else ("ECG I", "II")')
    frames, manifest = npz_files(tmp_path, renamed, ", channels=[0, 1]")
    np.testing.assert_allclose(frames.signal(np.arange(8)), X, rtol=1e-6)
    assert any("its channel 0 is I where the first recording has ECG I" in note for note in manifest.notes)
    frames, _ = npz_files(tmp_path, ONE, ', channels=["I"]', swapped=True)
    np.testing.assert_allclose(frames.signal(np.arange(8)), X[:, 0], rtol=1e-6)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_by_position_that_moved_are_refused(ending: str, tmp_path: Path) -> None:
    def write(path: Path, signal: np.ndarray) -> None:
        frame = pd.DataFrame(signal.T, columns=["ecg", "ppg"])
        frame = frame[["ppg", "ecg"]] if path.stem == "r3" else frame
        if ending == "csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path)

    with pytest.raises(UsageError, match="channels: position 1 has 'ecg' where the first recording has 'ppg'"):
        from_folder(tmp_path, write, ending, ", channels=[1]")


@pytest.mark.parametrize("target", ["", ", resample_to=50"])
def test_channels_of_wfdb_by_position_that_moved_are_refused(target: str, tmp_path: Path) -> None:
    for number, signal in enumerate(X):
        names = ("II", "I") if number == 3 else ("I", "II")
        write_wfdb(tmp_path, f"r{number}", 1000 * signal, 100, channels=names)
    table(tmp_path)
    with pytest.raises(UsageError, match=r"r3\.hea: channels: position 0 has 'II' where the first recording has 'I'"):
        prepared(tmp_path, f"from_wfdb(data_root, {OF_TABLE}, channels=[0]{target})")


def test_dates_of_recordings_with_and_without_a_time_zone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="time: some recordings have a time zone and others none"):
        npz_files(tmp_path, f'time="2020-01-01 12:00" + ("+01:00" if n == 3 else ""), {ONE}')


@pytest.mark.parametrize(
    ("argument", "of_dataset", "of_recording"),
    [("units", '"mV"', '"uV"'), ("units", '"mV"', '("mV", "uV")'), ("channels", '("I", "II")', '("II", "I")')],
)
def test_a_generator_whose_recordings_say_something_else_is_refused(
    argument: str, of_dataset: str, of_recording: str, tmp_path: Path
) -> None:
    given = {"channels": '("I", "II")', "units": '"mV"', argument: of_dataset}
    np.save(tmp_path / "x.npy", X)
    declare(
        tmp_path / "space.py",
        f"""
        @dataset("own", classes=("A", "B"), channels={given["channels"]}, units={given["units"]}, sampling_rate=100)
        def own(data_root):
            for n, x in enumerate(np.load(data_root / "x.npy")):
                yield Recording(x, "AB"[n % 2], n, {argument}={of_recording})
        """,
    )
    with pytest.raises(UsageError, match=rf"{argument}: @dataset\(\.\.\.\) says .* and the first Recording\(\.\.\.\)"):
        prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (", gain=2", "gain: read=function returns samples with a gain of their own"),
        (', decimal=","', "decimal: is about text that this package reads"),
        (", skip_lines=2", "skip_lines: is about text"),
    ],
)
def test_arguments_of_other_readers_are_refused_beside_a_function(options: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        npz_files(tmp_path, ONE, options)


def test_a_rate_that_recordings_do_not_have_is_noted(tmp_path: Path) -> None:
    _, manifest = npz_files(tmp_path, ONE, ", sampling_rate=250")
    assert manifest.sampling_rate == 100
    assert "sampling_rate=250 of from_folder is not used: recordings have 100 Hz of their own" in manifest.notes
    _, manifest = npz_files(tmp_path, ONE, ", sampling_rate=100")
    assert not any("of from_folder" in note for note in manifest.notes)


@pytest.mark.parametrize(("place", "is_refused"), [("r{}/ecg", True), ("r{}", False), ("/", False)])
def test_names_of_channels_in_another_order_are_refused_or_noted(place: str, is_refused: bool, tmp_path: Path) -> None:
    stated = {"leads": ["II", "I"], "other": ["X", "Y"]}
    if is_refused:
        with pytest.raises(UsageError, match=r"says leads = II, I; expected channels in that order"):
            hdf5(tmp_path, stated, place)
        return
    notes = hdf5(tmp_path, stated, place).notes
    assert "8 recordings: its group says leads = II, I, and channels are I, II: check their order" in notes


def test_a_rate_and_names_in_datasets_beside_the_samples_are_noted(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["fs"], file["leads"] = X, 250, ["II", "I"]
    csv(tmp_path / "labels.csv", ["name,label", *(f"{n},{'AB'[n % 2]}" for n in range(8))])
    call = f'from_hdf5(data_root, "a.h5", signals="x", channels=("I", "II"), units="mV", sampling_rate=100, {OF_TABLE})'
    notes = prepared(tmp_path, call)[1].notes
    assert "8 recordings: its group says fs = 250, and sampling_rate is 100: check it" in notes
    assert "8 recordings: its group says leads = II, I, and channels are I, II: check their order" in notes


def test_names_of_channels_among_the_variables_in_another_order_are_noted(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", signal=X[0], leads=["II", "I"])
    scipy.io.savemat(tmp_path / "a.mat", {"val": X[0], "leads": np.array(["II", "I"], object)})
    said = ["its variable says leads = II, I, and channels are I, II: check it"]
    assert from_npz(tmp_path / "a.npz", channels=("I", "II")).notes == said
    assert from_mat(tmp_path / "a.mat", channels=("I", "II")).notes == said
    assert from_npz(tmp_path / "a.npz", channels=("II", "I")).notes == []
    assert from_npz(tmp_path / "a.npz", channels="leads").channels == ["II", "I"]


def test_links_and_datasets_without_a_value_beside_the_samples_state_nothing(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["nowhere"] = X, h5py.SoftLink("/lost")
        file["empty"], file["elsewhere"] = h5py.Empty("f8"), h5py.ExternalLink("lost.h5", "/fs")
    csv(tmp_path / "labels.csv", ["name,label", *(f"{n},{'AB'[n % 2]}" for n in range(8))])
    call = f'from_hdf5(data_root, "a.h5", signals="x", channels=("I", "II"), units="mV", sampling_rate=100, {OF_TABLE})'
    frames, manifest = prepared(tmp_path, call)
    np.testing.assert_allclose(frames.signal(np.arange(8)), X, rtol=1e-6)
    assert not any("group" in note for note in manifest.notes)


def test_groups_that_differ_in_case_are_noted_and_missing_ones_unknown(tmp_path: Path) -> None:
    for number, signal in enumerate(X):
        np.save(tmp_path / f"r{number}.npy", signal)
    sexes = ["M", "m", "F", "N/A"] * 2
    rows = [f"r{n},{'AB'[n % 2]},{sex},{('1.05', '1.5', '-1.5')[n % 3]}" for n, sex in enumerate(sexes)]
    csv(tmp_path / "labels.csv", ["name,label,sex,change", *rows])
    call = f'from_folder(data_root, "*.npy", {OF_TABLE}, groups=["sex", "change"], sampling_rate=100, units="mV")'
    _, manifest = prepared(tmp_path, call)
    assert manifest.groups["sex"] == ("F", "M", "m", "unknown")
    assert any("groups of 'sex' with names that differ only in case" in note for note in manifest.notes)
    assert not any("groups of 'change'" in note for note in manifest.notes)


@pytest.mark.parametrize(
    ("sexes", "is_noted"),
    [("fffmmmmm", True), ("ffmmffmm", False), ("f-mmffmm", False), ("fmmffmmf", False), ("34444444", False)],
)
def test_a_person_in_two_groups_is_noted(sexes: str, is_noted: bool, tmp_path: Path) -> None:
    """Two recordings a person: one person of four is in two groups, none, none that is known, or all."""
    for number in range(8):
        np.save(tmp_path / f"r{number}.npy", X[number])
    rows = [f"r{n},{'AB'[n % 2]},p{n // 2},{sex.replace('-', '')}" for n, sex in enumerate(sexes)]
    csv(tmp_path / "labels.csv", ["name,label,who,sex", *rows])
    declare(
        tmp_path / "space.py",
        f"""
        @dataset("own")
        def own(data_root):
            more = dict(patient="who", groups=["sex"], sampling_rate=100, units="mV")
            return Recordings.from_folder(data_root, "*.npy", {OF_TABLE}, **more)
        """,
    )
    notes = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1).manifest.notes
    said = [note for note in notes if note.startswith("people in several groups of 'sex': 1 of 4; ")]
    assert said == [note for note in notes if "several groups" in note]
    assert len(said) == is_noted


def test_intervals_in_samples_of_an_interrupted_file_are_refused(tmp_path: Path) -> None:
    for number in range(4):
        np.save(tmp_path / f"r{number}.npy", X[number])
    rows = [f"r{number},{start},{start + 60},{start}" for number in range(4) for start in (0, 60)]
    csv(tmp_path / "stages.csv", ["name,start,end,label", *rows])
    declare(
        tmp_path / "space.py",
        f"""
        def one(path):
            return Recording(np.load(path), notes=[{INTERRUPTED!r}])

        @dataset("own", one_recording_per_person=True)
        def own(data_root):
            return Recordings.from_folder(
                data_root, "*.npy", read=one, table="stages.csv", name="name", label="label", start="start", end="end",
                interval_unit="samples", channels=("I", "II"), units="mV", sampling_rate=100, window_seconds=0.5,
            )
        """,
    )
    with pytest.raises(UsageError, match="start: is in samples, and the recording is interrupted"):
        prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)


def test_columns_of_labels_in_another_order_than_classes_are_refused() -> None:
    flags = pd.get_dummies(pd.Series(["N", "AF"] * 4)).astype(int)  # columns AF and N
    given: dict[str, Any] = {"channels": ("I", "II"), "units": "mV", "sampling_rate": 100, "patients": None}
    with pytest.raises(UsageError, match=r"labels: has the columns AF, N where classes are N, AF; give labels\[list"):
        Recordings(X, labels=flags, classes=("N", "AF"), **given)
    found = Recordings(X, labels=flags[["N", "AF"]], classes=("N", "AF"), **given)
    assert found.columns.labels is not None
    assert found.columns.labels.tolist() == [[1, 0], [0, 1]] * 4


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        ({"1": "AF", "0": "N"}, [0, 1] * 4),
        ({"1": "AF", "2": "N"}, [1, 2, 0, 1, 2, 1, 2, 1]),  # that of 0 is left out
        ({"A": "AF", "B": "N"}, [0, 1] * 4),  # positions
    ],
)
def test_numbers_as_labels_are_names_where_classes_map_numbers(
    classes: dict[str, str], labels: list[int], tmp_path: Path
) -> None:
    for number, signal in enumerate(X):
        np.savez(tmp_path / f"r{number}.npz", signal=signal, label=labels[number])
    declare(
        tmp_path / "space.py",
        f"""
        from clops_sweep import from_npz

        def one(path):
            return from_npz(path, label="label", sampling_rate=100, channels=("I", "II"), units="mV")

        @dataset("own", one_recording_per_person=True)
        def own(data_root):
            return Recordings.from_folder(data_root, "*.npz", read=one, classes={classes!r})
        """,
    )
    prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)
    frames = open_frames("own", prepared_root=tmp_path / "prepared", leads="all")
    assert frames.classes == tuple(classes.values())
    positions = {name: position for position, name in enumerate(classes) if name.isdigit()} or {"0": 0, "1": 1}
    assert frames.labels.tolist() == [positions[str(label)] for label in labels if str(label) in positions]


@pytest.mark.parametrize(
    ("of_labels", "of_people", "is_refused"),
    [
        ([3, 2, 1, 0], [0, 1, 2, 3], True),
        (["d", 1, "b", "a"], ["a", "b", 1, "d"], True),
        ([3, 2, 1, 0], [3, 2, 1, 0], False),
        ([3, 2, 1, 0], [7, 8, 9, 10], False),
        ([0, 0, 0, 0], [0, 0, 0, 0], False),
    ],
)
def test_columns_of_pandas_in_two_orders_are_refused(
    of_labels: list[object], of_people: list[object], is_refused: bool
) -> None:
    labels = pd.Series(["A", "A", "B", "B"], index=of_labels)
    people = pd.Series(["p0", "p1", "p2", "p3"], index=of_people)

    def declared() -> Recordings:
        return Recordings(X[:4], 100, ["a", "b"], "mV", labels, ["A", "B"], people, groups={"sex": ["f", "m"] * 2})

    if is_refused:
        with pytest.raises(UsageError, match=r"patients: has the index of labels in another order"):
            declared()
        aligned = people.reindex(labels.index)
        recordings = Recordings(X[:4], 100, ["a", "b"], "mV", labels, ["A", "B"], aligned)
        assert recordings.columns.patients == aligned.tolist()
    else:
        assert declared().columns.patients == people.tolist()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [[1, 0], [0, 1], [0, 0], [0, 0]],
            "20 of 40 frames have none of the classes, and no frame has several: if each should have one, labels lack "
            "the column of a class",
        ),
        ([[1, 0], [0, 1], [1, 1], [0, 0]], "10 of 40 frames have none of the classes"),
        ([[1, 0], [0, 1], [1, 1], [0, 1]], ""),
    ],
)
def test_frames_without_a_class_are_counted(rows: list[list[int]], said: str, tmp_path: Path) -> None:
    declare(
        tmp_path / "space.py",
        f"""
        @dataset("own")
        def own(data_root):
            signals = np.random.default_rng(0).normal(size=(40, 1, 100)).astype("f4")
            people = [f"p{{n}}" for n in range(40)]
            return Recordings(signals, 100, ["ECG"], "mV", np.array({rows} * 10), ["A", "B"], people)
        """,
    )
    prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)
    frames = open_frames("own", prepared_root=tmp_path / "prepared", leads="all")
    assert without_class(frames, np.ones(len(frames), bool)) == said
