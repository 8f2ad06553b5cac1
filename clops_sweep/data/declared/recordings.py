"""`Recordings`: what a declared function returns, checked argument by argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.label_table import Fields, Table
from clops_sweep.data.declared.portions import STACK_BYTES, Columns, InMemory, Portion, stacked, stored_as
from clops_sweep.data.records import Common, Source
from clops_sweep.errors import UsageError, shown


class Recordings:
    """n recordings of the same channels, with labels and patients: in memory, or in files that are read one by one.

    A recording is a frame by itself, or is cut into frames. What is lost nowhere: whole numbers of up to 16 bits are
    stored as they are, other samples as float32.

    Args:
        signals: [n, channels, samples], [n, samples] of one channel, or a list of [channels, samples_i].
        sampling_rate: samples a second.
        channels: their names.
        units: of the signals, such as "mV" or "g".
        labels: [n] positions in `classes` (or their names), or [n, C] of 0 and 1 where a recording may have several.
        classes: their names, in the order in which tasks are made of them.
        patients: [n] who must not be in two splits, names or numbers. ``range(n)`` where people are not known: every
            recording then counts as a person.
        times: [n] dates, for time_il.
        domains: columns [n] that domain_il may go by, by name.
        split: [n] "train", "validation" or "test", where the publisher has fixed it: it then is the split for every
            `split_seed`. Validation may be missing. Otherwise 60, 20 and 20 percent of the patients, by `split_seed`.
        window_seconds: how long a frame is; None where every recording is one.
        stride_seconds: from the begin of a window to that of the next; by default they follow one another.
        resample_to: samples a second of the frames, by the Fourier method (`scipy.signal.resample`); None for
            `sampling_rate`.
        names: [n] of the recordings, each once; by default they are numbered.
        gain: what samples are multiplied by to be in `units`, one number or one for each channel.

    Raises:
        UsageError: one sentence that names the argument, what is wrong and what would be right. Samples that are NaN or
            infinite are found when the frames are prepared.
    """

    def __init__(
        self,
        signals: Any,
        sampling_rate: float,
        channels: Sequence[str],
        units: str,
        labels: Any,
        classes: Sequence[str],
        patients: Any,
        times: Any = None,
        domains: Mapping[str, Any] | None = None,
        split: Any = None,
        window_seconds: float | None = None,
        stride_seconds: float | None = None,
        resample_to: float | None = None,
        names: Any = None,
        gain: Any = None,
    ) -> None:
        rate = checks.positive("sampling_rate", sampling_rate)
        channel_names, class_names = checks.names("channels", channels), checks.names("classes", classes, least=2)
        windowing = checks.windowing(window_seconds, stride_seconds, resample_to)
        arrays = _arrays(signals, len(channel_names), windowing[0])
        count = len(arrays)
        called = [str(number) for number in range(count)] if names is None else checks.texts("names", names, count)
        self.columns = checks.columns(called, class_names, labels, patients, times, domains, split)
        factor = checks.gains(gain, len(channel_names))
        checks.together(class_names, self.columns)
        kinds = {array.dtype for array in arrays} if isinstance(arrays, list) else {arrays.dtype}
        narrow = all(stored_as(kind, windowing[2]) is np.int16 for kind in kinds)
        self.common = Common(
            class_names,
            channel_names,
            checks.units(units),
            self.columns.labels is not None and self.columns.labels.ndim == 2,
            np.int16 if narrow else np.float32,
            *windowing,
        )
        self._files: Sequence[Portion] = ()
        self._arrays, self._rate, self._gain = arrays, rate, factor

    def __len__(self) -> int:
        return len(self.columns)

    def sources(self) -> Iterable[Source]:
        """The recordings: those in memory many at a time, those in files one by one."""
        if self._files:
            return self._files
        if isinstance(self._arrays, list):
            return stacked(
                self._held(array[None], self.columns.rows(place, place + 1)) for place, array in enumerate(self._arrays)
            )
        return self._held(self._arrays, self.columns).portions(max(1, STACK_BYTES // self._arrays[0].nbytes))

    def _held(self, array: Any, columns: Columns) -> InMemory:
        return InMemory(columns.names, columns=columns, array=array, rate=self._rate, gain=self._gain)

    @classmethod
    def _of(cls, common: Common, files: Sequence[Portion], columns: Columns) -> Recordings:
        """Recordings in files, looked at as a whole."""
        checks.together(common.classes, columns)
        made = cls.__new__(cls)
        made.common, made.columns, made._files = common, columns, files
        return made

    @classmethod
    def from_wfdb(
        cls,
        folder: str | PathLike[str],
        label: str | int,
        *,
        classes: Sequence[str] | Mapping[str, str] | None = None,
        table: Table | None = None,
        name: str | int = 0,
        patient: str | int | None = None,
        time: str | int | None = None,
        domains: Mapping[str, str | int] | None = None,
        split: str | int | None = None,
        separator: str | None = None,
        channels: Sequence[str] | None = None,
        window_seconds: float | None = None,
        stride_seconds: float | None = None,
        resample_to: float | None = None,
    ) -> Recordings:
        """The WFDB records (.hea with their signal files) in a folder and in those below it, read one by one.

        Columns are those of `table`, by name or, counted from 0, by position; a table whose first line names its
        columns has to be asked by name at least once. Instead of a column, "#Dx" names that comment line of the
        record's header.

        Args:
            folder: where the records are.
            label: a column of `table`; "#Dx" for a comment of the header; or ".atr" for the rhythm notes of the
                annotation files with that ending: frames are then cut out of each stretch of one rhythm.
            classes: the labels that are used, in the order of the tasks, or from a label to the name of its class;
                other recordings are left out and counted. By default all labels of the table, sorted.
            table: a CSV file, in the folder or elsewhere, or a pandas DataFrame.
            name: the column that has the records' names.
            patient: the column that says whose a record is; by default each is of a person of its own.
            time: the column with dates.
            domains: columns that domain_il may go by, by the name that they get.
            split: the column with "train", "validation" or "test".
            separator: what stands between several labels of a recording; None where it has one.
            channels: which ones, by name; by default those of the first record.
            window_seconds: as above, and needed for rhythm notes and records of different length.
            stride_seconds: as above.
            resample_to: as above; records of different sampling rates need it.

        Raises:
            UsageError: a folder, table, column or record that is not as described.
        """
        from clops_sweep.data.declared.wfdb_folder import wfdb_files

        fields = Fields(label, name, patient, time, split, domains or {})
        windowing = checks.windowing(window_seconds, stride_seconds, resample_to)
        return cls._of(*wfdb_files(folder, fields, table, classes, separator, channels, windowing))

    @classmethod
    def from_folder(
        cls,
        folder: str | PathLike[str],
        pattern: str = "*.csv",
        *,
        table: Table,
        label: str | int,
        sampling_rate: float,
        units: str,
        name: str | int = 0,
        channels: Sequence[str] | None = None,
        classes: Sequence[str] | Mapping[str, str] | None = None,
        patient: str | int | None = None,
        time: str | int | None = None,
        domains: Mapping[str, str | int] | None = None,
        split: str | int | None = None,
        separator: str | None = None,
        gain: Any = None,
        window_seconds: float | None = None,
        stride_seconds: float | None = None,
        resample_to: float | None = None,
    ) -> Recordings:
        """One file a recording, CSV, NPY or Parquet, and a table of labels; files are read one by one.

        A CSV or Parquet file has a column for each channel, a NPY file the shape [channels, samples]. Columns of the
        table, `classes` and `separator` are as in `from_wfdb`.

        Args:
            folder: where the files are.
            pattern: which of them, such as `*.csv` or `**/*.npy`.
            table: a CSV file, in the folder or elsewhere, or a pandas DataFrame.
            label: its column of labels.
            sampling_rate: samples a second.
            units: of the signals.
            name: its column of file names, with or without their endings.
            channels: names of the channels; of CSV and Parquet files which columns, by default all.
            classes: labels that are used.
            patient: its column that says whose a recording is.
            time: its column with dates.
            domains: its columns that domain_il may go by.
            split: its column with "train", "validation" or "test".
            separator: between several labels.
            gain: what samples are multiplied by to be in `units`.
            window_seconds: as above.
            stride_seconds: as above.
            resample_to: as above.

        Raises:
            UsageError: a folder, table, column or file that is not as described.
        """
        from clops_sweep.data.declared.file_folder import signal_files

        fields = Fields(label, name, patient, time, split, domains or {})
        rate, windowing = (
            checks.positive("sampling_rate", sampling_rate),
            checks.windowing(window_seconds, stride_seconds, resample_to),
        )
        return cls._of(
            *signal_files(
                folder, pattern, fields, table, classes, separator, channels, rate, checks.units(units), gain, windowing
            )
        )


def _arrays(signals: Any, channels: int, window: float | None) -> Any:
    """The recordings as a list of [channels, samples], without a copy."""
    checks.unmasked("signals", signals)
    if isinstance(signals, np.ndarray) and signals.dtype != object:
        if signals.ndim not in (2, 3) or not signals.size:
            raise UsageError(f"signals: expected [n, channels, samples], not the shape {list(signals.shape)}")
        plain = np.asarray(signals)  # rows of a memory map are slow to make
        stacked = plain[:, None] if plain.ndim == 2 else plain
        checks.signal("signals", stacked[0])
        found: Any = stacked
    elif (isinstance(signals, Sequence) and not isinstance(signals, str)) or isinstance(signals, np.ndarray):
        found = [checks.signal(f"signals[{place}]", each) for place, each in enumerate(signals)]
    else:
        raise UsageError(f"signals: expected an array or a list of arrays, not {shown(signals)}")
    if not len(found):
        raise UsageError("signals: there is no recording")
    for place, array in enumerate(found[:1] if isinstance(found, np.ndarray) else found):
        if len(array) != channels:
            raise UsageError(
                f"signals[{place}]: has {len(array)} channels; expected {channels}, as there are names in channels"
            )
        if window is None and array.shape[1] != found[0].shape[1]:
            raise UsageError(
                f"signals[{place}]: has {array.shape[1]} samples where the first has {found[0].shape[1]}; give "
                "window_seconds to cut frames of one length"
            )
    return found
