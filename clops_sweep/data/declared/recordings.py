"""`Recordings`: the return value of a declared function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from clops_sweep.arguments import arguments_of_class
from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.clocks import two_ways_to_read
from clops_sweep.data.declared.fields import SignalFields, Table, TableFields, named_columns, require_no_columns
from clops_sweep.data.declared.intervals import require_durations
from clops_sweep.data.declared.portions import STACK_BYTES, Columns, InMemory, stacked, stored_as
from clops_sweep.data.declared.table_alone import stop_at_table
from clops_sweep.data.declared.text_table import TextOptions
from clops_sweep.data.records import Common, Source
from clops_sweep.errors import UsageError, shown


@arguments_of_class
class Recordings:
    """n recordings of the same channels, with labels and patients, in memory or in files that are read one by one.

    A recording is one frame, or is cut into frames. Integers of up to 16 bits are stored unchanged, other samples as
    float32.

    Example:
        >>> signals = np.random.default_rng(0).normal(size=(60, 3, 250))  # [n, channels, samples]
        >>> label, person = np.arange(60) % 2, np.arange(60) // 6
        >>> recordings = Recordings(signals, 50, ["ax", "ay", "az"], "g", label, ["rest", "walk"], person)
        >>> len(recordings)
        60

    Args:
        signals: [n, channels, samples], [n, samples] of one channel, or a list of [channels, samples_i].
        sampling_rate: sampling rate in Hz.
        channels: names of the channels.
        units: unit of the signals, such as "mV" or "g"; a list has one for each channel.
        labels: [n] indices into `classes` (or class names), or [n, C] of 0 and 1 for several labels per recording.
        classes: names of the classes, in the order of the tasks.
        patients: [n] names or numbers of people, who are never in two splits. None if people are unknown: each
            recording is then split on its own, and results name and count no people.
        times: [n] dates, for time_il.
        domains: columns [n] for domain_il, by name.
        split: [n] "train", "validation" or "test", if the publisher defines a split: it is used for every `split_seed`.
            Validation may be missing. By default, 60, 20 and 20 percent of the patients, by `split_seed`.
        window_seconds: duration of a frame; None if every recording is one frame.
        stride_seconds: time between the starts of consecutive windows; by default they are contiguous.
        resample_to: sampling rate of the frames in Hz, by a polyphase filter that keeps level and slope at the ends of
            a frame; None for `sampling_rate`.
        names: [n] distinct names of the recordings; by default they are numbered.
        gain: factor from samples to `units`, one number or one per channel.
        groups: columns [n] by name, such as ``{"sex": [...]}``, for subgroups in update reports; at most 50 values
            each, unless they are numbers, and "unknown" where an entry is missing (None, NaN or empty). No run
            depends on them.
        missing: "refuse" recordings with NaN, infinite or missing samples, or "drop_windows" to leave out the windows
            that have them, which are counted.
        gaps: "split" to cut each piece between missing samples on its own, so that no window has any.
        trim: "flat" to cut frames between the flat ends of each recording: samples at its begin and end that are equal
            in each channel, such as padding with zeros.

    Raises:
        UsageError: one sentence that names the argument, what is wrong and what would be right. NaN or infinite samples
            are found when frames are prepared.
    """

    def __init__(
        self,
        signals: Any,
        sampling_rate: float,
        channels: Sequence[str],
        units: str | Sequence[str],
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
        groups: Mapping[str, Any] | None = None,
        missing: str = "refuse",
        gaps: str | None = None,
        trim: str | None = None,
    ) -> None:
        self._rate = checks.positive("sampling_rate", sampling_rate)
        channel_names = checks.names("channels", channels)
        class_names = checks.names("classes", classes, least=2)
        windowing = checks.windowing(window_seconds, stride_seconds, resample_to, missing, gaps, trim)
        self._arrays = _arrays(signals, len(channel_names), windowing.window)
        count = len(self._arrays)
        called = [str(number) for number in range(count)] if names is None else checks.texts("names", names, count)
        checks.require_clear_numbers("labels", labels, class_names)
        checks.require_columns_in_order(labels, class_names)
        given = {"names": names, "labels": labels, "patients": patients, "times": times, "split": split}
        for argument, columns in (("domains", domains), ("groups", groups)):
            named = columns if isinstance(columns, Mapping) else {}
            given |= {f"{argument}[{name!r}]": column for name, column in named.items()}
        checks.require_one_order(given)
        self.columns = checks.columns(called, class_names, labels, patients, times, domains, split, groups)
        self._gain = checks.gains(gain, len(channel_names))
        checks.together(class_names, self.columns)
        is_list = isinstance(self._arrays, list)
        dtypes = {array.dtype for array in self._arrays} if is_list else {self._arrays.dtype}
        checked_labels = self.columns.labels
        self.common = Common(
            classes=class_names,
            channels=channel_names,
            units=checks.units_of_channels(units, len(channel_names)),
            multi_label=checked_labels is not None and checked_labels.ndim == 2,
            stored_as=stored_as(np.result_type(*dtypes), windowing.rate),
            windowing=windowing,
        )
        self._files: Sequence[Source] = ()

    def __len__(self) -> int:
        return len(self.columns)

    def sources(self) -> Iterable[Source]:
        """Yield the recordings: those in memory many at a time, those in files one by one."""
        if self._files:
            return self._files
        one_by_one = self.common.windowing.one_by_one
        if isinstance(self._arrays, list):
            return self._of_list() if one_by_one else stacked(self._of_list())
        many = 1 if one_by_one else max(1, STACK_BYTES // self._arrays[0].nbytes)
        return self._in_memory(self._arrays, self.columns).portions(many)

    def _of_list(self) -> Iterator[InMemory]:
        for position, array in enumerate(self._arrays):
            yield self._in_memory(array[None], self.columns.rows(position, position + 1))

    def _in_memory(self, array: Any, columns: Columns) -> InMemory:
        return InMemory(columns.names, columns=columns, array=array, rate=self._rate, gain=self._gain)

    @classmethod
    def from_braindecode(
        cls,
        windows: Any,
        classes: Sequence[str],
        *,
        units: str,
        patient: str | None = "subject",
        channels: Sequence[str] | Sequence[int] | None = None,
        domains: Mapping[str, str] | None = None,
        groups: Mapping[str, str] | None = None,
        split: str | None = None,
    ) -> Recordings:
        """Return the windows of a braindecode data set, each as a recording that is one frame.

        Example::

            windows = create_windows_from_events(recordings, mapping={"left_hand": 0, "right_hand": 1})
            Recordings.from_braindecode(windows, ["left hand", "right hand"], units="uV")

        Args:
            windows: a `BaseConcatDataset` of windows with targets.
            classes: names of the targets 0, 1, and so on.
            units: unit of the signals as they are now: MNE has volts, and preprocessing often scales them to uV.
            patient: column of the descriptions with the person; None if people are unknown.
            channels: names or positions of the channels; by default all but stimulus channels.
            domains: columns of the descriptions for domain_il, by their new names.
            groups: columns of the descriptions for subgroups in update reports, by their new names.
            split: column of the descriptions with "train", "validation" or "test".

        Raises:
            UsageError: the data set has no windows or targets, its recordings differ in channels, rate or length, or a
                description has no such column.
        """
        from clops_sweep.data.declared.formats.braindecode_windows import braindecode_windows

        renamed = {**(domains or {}), **(groups or {})}
        wanted = [*renamed.values(), *(name for name in (patient, split) if name is not None)]
        windowed = braindecode_windows(windows, list(dict.fromkeys(wanted)), channels)
        return cls(
            windowed.signals,
            windowed.rate,
            windowed.channels,
            units,
            windowed.targets,
            classes,
            None if patient is None else windowed.columns[patient],
            domains={new: windowed.columns[name] for new, name in (domains or {}).items()} or None,
            groups={new: windowed.columns[name] for new, name in (groups or {}).items()} or None,
            split=None if split is None else windowed.columns[split],
            names=windowed.names,
        )

    @classmethod
    def from_wfdb(
        cls,
        folder: str | PathLike[str],
        label: str | int | Sequence[str | int],
        *,
        classes: Sequence[str] | Mapping[str, str] | None = None,
        table: Table | None = None,
        name: str | int = 0,
        patient: str | int | None = None,
        time: str | int | None = None,
        date_format: str | None = None,
        domains: Mapping[str, str | int] | Sequence[str] | None = None,
        split: str | int | None = None,
        separator: str | None = None,
        channels: Sequence[str] | Sequence[int] | None = None,
        window_seconds: float | None = None,
        stride_seconds: float | None = None,
        resample_to: float | None = None,
        groups: Mapping[str, str | int] | Sequence[str] | None = None,
        missing: str = "refuse",
        gaps: str | None = None,
        trim: str | None = None,
        interval_rule: str = "within",
        window_around: str | None = None,
    ) -> Recordings:
        """Return the WFDB records (.hea and signal files) in a folder and its subfolders, read one by one.

        Columns of `table` are given by name or by position, from 0; if the first line of a file has names, at least one
        column must be given by name. Instead of a column, "#Dx" is the comment line of that name in the record's
        header.

        Args:
            folder: folder of the records.
            label: a column of `table`, or a list of columns of 0 and 1, one for each label; "#Dx" for a comment of the
                header, "#" for the first one without a name; or ".atr" for the annotation files with that extension:
                frames are then cut from segments of one rhythm or, without rhythms in `classes`, of one symbol.
            classes: the labels to use, in the order of the tasks, or label to class name; other recordings are dropped
                and counted. By default all labels of the table, sorted.
            table: a CSV file, in the folder or elsewhere, or a pandas DataFrame.
            name: column with the names of the records.
            patient: column with the patient; by default each record is a separate person.
            time: column with dates.
            date_format: format of these dates, such as "%d.%m.%Y", as for `datetime.strptime`; by default ISO dates.
            domains: columns for domain_il, by their new names.
            split: column with "train", "validation" or "test".
            separator: separator of several labels of a recording; None for single labels.
            channels: names or positions (from 0) of the channels to use; by default those of the first record.
            window_seconds: as above; required for rhythm notes and for records of different lengths.
            stride_seconds: as above.
            resample_to: as above; required for records of different sampling rates.
            groups: columns for subgroups in update reports: a list, or a mapping from the name that each gets.
            missing: as above.
            gaps: as above.
            trim: as above.
            interval_rule: as in `from_folder`, for annotations.
            window_around: "beat" for one frame around each annotation whose symbol is in `classes`.

        Raises:
            UsageError: an invalid folder, table, column or record.
        """
        from clops_sweep.data.declared.wfdb_folder import wfdb_files

        of_domains, of_groups = named_columns("domains", domains), named_columns("groups", groups)
        fields = TableFields(
            label, name, patient, time, split, of_domains, of_groups,
            table=table, classes=classes, separator=separator, date_format=date_format,
        )  # fmt: skip
        windowing = checks.windowing(
            window_seconds, stride_seconds, resample_to, missing, gaps, trim, interval_rule, window_around
        )
        stop_at_table(folder, fields)
        return recordings_in_files(*wfdb_files(folder, fields, channels, windowing), date_format)

    @classmethod
    def from_hdf5(
        cls,
        folder: str | PathLike[str],
        pattern: str = "*.hdf5",
        *,
        signals: str,
        ids: str | None = None,
        table: Table,
        label: str | int | Sequence[str | int],
        channels: Sequence[str],
        units: str,
        sampling_rate: float,
        name: str | int = 0,
        classes: Sequence[str] | Mapping[str, str] | None = None,
        patient: str | int | None = None,
        time: str | int | None = None,
        date_format: str | None = None,
        domains: Mapping[str, str | int] | Sequence[str] | None = None,
        split: str | int | None = None,
        separator: str | None = None,
        gain: Any = None,
        window_seconds: float | None = None,
        stride_seconds: float | None = None,
        resample_to: float | None = None,
        groups: Mapping[str, str | int] | Sequence[str] | None = None,
        missing: str = "refuse",
        gaps: str | None = None,
        trim: str | None = None,
    ) -> Recordings:
        """Return recordings in HDF5 files, some megabytes at a time, with a table that has a row for each.

        Files may have recordings without a row, and the table rows without a recording: both are left out and counted.
        Other arguments are as in `from_folder`.

        Args:
            folder: folder of the files.
            pattern: pattern of the files.
            signals: the dataset [n, channels, samples] or [n, samples, channels], such as "tracings"; `*/ecg` for the
                dataset of each recording, in a group of its name; or the dataset [channels, samples] or
                [samples, channels] of files of one recording, which has the name of its file.
            ids: the dataset [n] with the names of the recordings; by default they are numbered from 0 in each file.
            table: a CSV file, in the folder or elsewhere, or a pandas DataFrame.
            label: column with the labels.
            channels: names of all channels; their number tells the axis of channels from that of samples.
            units: unit of the signals.
            sampling_rate: sampling rate in Hz.
            name: column with the names of the recordings.
            classes: the labels to use.
            patient: column with the patient.
            time: column with dates.
            date_format: format of these dates, such as "%d.%m.%Y", as for `datetime.strptime`; by default ISO dates.
            domains: columns for domain_il, by their new names.
            split: column with "train", "validation" or "test".
            separator: separator of several labels.
            gain: factor from samples to `units`.
            window_seconds: as above.
            stride_seconds: as above.
            resample_to: as above.
            groups: columns for subgroups in update reports.
            missing: as above.
            gaps: as above.
            trim: as above.

        Raises:
            UsageError: an invalid folder, table, column or file.
        """
        from clops_sweep.data.declared.formats.hdf5_rows import hdf5_rows

        of_domains, of_groups = named_columns("domains", domains), named_columns("groups", groups)
        fields = TableFields(
            label, name, patient, time, split, of_domains, of_groups,
            table=table, classes=classes, separator=separator, date_format=date_format,
        )  # fmt: skip
        windowing = checks.windowing(window_seconds, stride_seconds, resample_to, missing, gaps, trim)
        rate = checks.positive("sampling_rate", sampling_rate)
        samples = SignalFields(channels, checks.units(units), rate, gain)
        stop_at_table(folder, fields)
        return recordings_in_files(*hdf5_rows(folder, pattern, signals, ids, fields, samples, windowing), date_format)

    @classmethod
    def from_folder(
        cls,
        folder: str | PathLike[str],
        pattern: str = "*.csv",
        *,
        read: Callable[[Path], Any] | None = None,
        table: Table | None = None,
        label: str | int | Sequence[str | int] | None = None,
        sampling_rate: float | None = None,
        units: str | None = None,
        name: str | int = 0,
        channels: Sequence[str] | Sequence[int] | None = None,
        classes: Sequence[str] | Mapping[str, str] | None = None,
        patient: str | int | None = None,
        time: str | int | None = None,
        date_format: str | None = None,
        domains: Mapping[str, str | int] | Sequence[str] | None = None,
        split: str | int | None = None,
        separator: str | None = None,
        gain: Any = None,
        window_seconds: float | None = None,
        stride_seconds: float | None = None,
        resample_to: float | None = None,
        groups: Mapping[str, str | int] | Sequence[str] | None = None,
        missing: str = "refuse",
        gaps: str | None = None,
        trim: str | None = None,
        start: str | int | None = None,
        end: str | int | None = None,
        interval_unit: str = "seconds",
        interval_rule: str = "within",
        window_around: str | None = None,
        skip_lines: int | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        until_next: bool = False,
    ) -> Recordings:
        """Return recordings in text, NPY or Parquet files, or in files that a function reads.

        A text file (.csv, .txt, .tsv, .dat) or Parquet file has one column per channel; an NPY file has the shape
        [channels, samples]. Files are read one by one. The mark between columns, the encoding (UTF-8, or UTF-16 with a
        byte order mark), decimal commas, names in comments or in the JSON header of a recorder, and a line of units are
        detected; commas that may be decimal or between columns are asked for. A last line with too few cells is left
        out, with a note. Without `channels`, a column that looks like a time, an index
        or a label is refused, and the index of a pandas table is left out. Columns of the table, `classes` and
        `separator` are as in `from_wfdb`.

        With `read`, files are of any format: `read(path)` returns a `Recording`, or several, and is called in several
        processes. Labels, people, dates, splits, domains and groups come from the table, which has one row for each
        file, or from the recordings, each from either side; if both give one, they must agree.

        Args:
            folder: folder of the files.
            pattern: pattern of the files, such as `*.csv` or `**/*.npy`.
            read: a function of a path that returns `Recording(...)`, such as `from_edf`.
            table: a CSV file, in the folder or elsewhere, or a pandas DataFrame; optional with `read`.
            label: column with the labels; None if recordings have labels or intervals of their own.
            sampling_rate: sampling rate in Hz; with `read`, by default that of the recordings, as are `units`.
            units: unit of the signals.
            name: column with file names, with or without extension.
            channels: names of the channels; for CSV and Parquet files the columns to use, by default all. Positions
                from 0 select channels of any file.
            classes: the labels to use.
            patient: column with the patient.
            time: column with dates; with `read`, "header" for the `start` of each recording, which `from_edf` has from
                its file. Anonymized headers have no date: 1 January 1985, X, or one day in all files.
            date_format: format of these dates, such as "%d.%m.%Y", as for `datetime.strptime`; by default ISO dates.
            domains: columns for domain_il, by their new names.
            split: column with "train", "validation" or "test".
            separator: separator of several labels.
            gain: factor from samples to `units`.
            window_seconds: as above.
            stride_seconds: as above.
            resample_to: as above.
            groups: its columns for subgroups in update reports: a list, or a mapping from the name that each gets.
            missing: as above.
            gaps: as above.
            trim: as above.
            start: column with the starts of labelled intervals: the table then has a row for each interval. Starts and
                ends that are dates, of `date_format`, count from the start of the recording, by `time` or its header.
            end: column with the ends of the intervals.
            interval_unit: "seconds" or "samples" since the start of the recording.
            interval_rule: "within": frames are cut within each interval. "majority": from the whole recording, each of
                the class of more than half of it. "contains": each of the first of `classes` that it contains.
            window_around: "beat" for one frame around the start of each interval, or each annotation of a beat.
            delimiter: the mark between the columns of text files: tab, semicolon, bar, comma, or a space for any
                number of spaces. By default it is guessed; comments have no say in it.
            decimal: the decimal mark of text files, "." or ","; by default it is guessed.
            skip_lines: lines of text files to skip before the names of the columns, or before the samples without
                names. By default a first line that looks like a start time or a rate is refused; 0 accepts it.
            until_next: whether an interval of the table without an end lasts until the next one of its recording that
                has none, whatever its label; the last one until the end of the recording.

        Raises:
            UsageError: an invalid folder, table, column or file.
        """
        from clops_sweep.data.declared.file_folder import signal_files
        from clops_sweep.data.declared.header_dates import HEADER

        if label is None and (read is None or start is not None):
            raise UsageError(
                "label: expected the column with the labels; only recordings of read=function may have labels of their "
                "own, without start"
            )
        from_header = read is not None and time == HEADER
        if from_header:
            time = None
        of_domains, of_groups = named_columns("domains", domains), named_columns("groups", groups)
        fields = TableFields(
            label, name, patient, time, split, of_domains, of_groups, start, end, table, classes, separator,
            in_samples=interval_unit == "samples", closes=until_next, date_format=date_format,
        )  # fmt: skip
        if table is None and read is not None:
            require_no_columns(fields)
        rate = checks.positive("sampling_rate", sampling_rate) if read is None or sampling_rate is not None else None
        windowing = checks.windowing(
            window_seconds, stride_seconds, resample_to, missing, gaps, trim, interval_rule, window_around
        )
        checks.one_of("interval_unit", interval_unit, ("seconds", "samples"))
        checks.one_of("until_next", until_next, (True, False))
        if until_next and start is None:
            raise UsageError(
                "until_next: closes intervals of a table, so it goes with start; from_edf(..., until_next=True) closes "
                "annotations of files"
            )
        unit = checks.units(units) if read is None or units is not None else None
        signals = SignalFields(channels, unit, rate, gain)
        text = TextOptions(skip_lines, delimiter, decimal)
        if read is not None:
            _require_no_other_reader(gain, {"delimiter": delimiter, "decimal": decimal, "skip_lines": skip_lines})
        stop_at_table(folder, fields, recordings_have_more=read is not None)
        made = signal_files(folder, pattern, fields, signals, windowing, text, read, from_header=from_header)
        return recordings_in_files(*made, date_format)


def _require_no_other_reader(gain: Any, of_text: Mapping[str, Any]) -> None:
    """Refuse arguments that say how this package reads files, where a function reads them.

    Args:
        gain: factor from samples to units.
        of_text: arguments about text files.

    Raises:
        UsageError: one of them is given.
    """
    if gain is not None and np.any(np.asarray(gain) != 1):
        raise UsageError("gain: read=function returns samples with a gain of their own; give Recording(gain=...) there")
    named = next((name for name, value in of_text.items() if value is not None), None)
    if named is not None:
        raise UsageError(f"{named}: is about text that this package reads, and read=function reads it; leave it out")


def recordings_in_files(
    common: Common, files: Sequence[Source], columns: Columns, date_format: str | None = None
) -> Recordings:
    """Return recordings in files, validated together, unless their facts are known only once they are read.

    Args:
        common: values common to the recordings.
        files: the recordings.
        columns: their facts.
        date_format: the format of their dates in a table, if it was given.
    """
    if date_format is not None and columns.times is not None:
        common = replace(common, notes=(*common.notes, *two_ways_to_read(date_format, columns.times)))
    if len(columns):
        checks.together(common.classes, columns, common.left_out)
    require_durations(common.windowing.rule, (getattr(file, "intervals", None) for file in files))
    made = Recordings.__new__(Recordings)
    made.common = common
    made.columns = columns
    made._files = files
    return made


def _arrays(signals: Any, channels: int, window: float | None) -> Any:
    """Return the recordings as a list of [channels, samples], without a copy."""
    checks.unmasked("signals", signals)
    if isinstance(signals, np.ndarray) and signals.dtype != object:
        if signals.ndim in (2, 3) and not len(signals):
            raise UsageError(
                f"signals: there is no recording: the shape is {list(signals.shape)}; expected at least one"
            )
        if signals.ndim not in (2, 3) or not signals.size:
            raise UsageError(f"signals: expected [n, channels, samples], not the shape {list(signals.shape)}")
        if signals.ndim == 2 and channels != 1:
            raise UsageError(
                f"signals: the shape {list(signals.shape)} is [n, samples] of one channel; expected [n, channels, "
                f"samples] with {channels} channels, as there are names in channels"
            )
        plain = np.asarray(signals)  # rows of a memory map are slow to create
        stacked = plain[:, None] if plain.ndim == 2 else plain
        checks.signal("signals", stacked[0])
        arrays: Any = stacked
    elif (isinstance(signals, Sequence) and not isinstance(signals, str)) or isinstance(signals, np.ndarray):
        arrays = [checks.signal(f"signals[{number}]", signal) for number, signal in enumerate(signals)]
    else:
        in_file = hasattr(signals, "shape") and hasattr(signals, "dtype")  # of h5py or Zarr
        hint = "; read its values with [:]" if in_file else ""
        raise UsageError(f"signals: expected an array or a list of arrays, not {shown(signals)}{hint}")
    if not len(arrays):
        raise UsageError("signals: there is no recording")
    for number, array in enumerate(arrays[:1] if isinstance(arrays, np.ndarray) else arrays):
        if len(array) != channels and np.ndim(signals[number]) == 1:
            raise UsageError(
                f"signals[{number}]: the shape {list(np.shape(signals[number]))} is [samples] of one channel; expected "
                f"[channels, samples] with {channels} channels, as there are names in channels"
            )
        if len(array) != channels:
            raise UsageError(
                f"signals[{number}]: has {len(array)} channels; expected {channels}, as there are names in channels"
                + checks.transposed(array, channels)
            )
        if window is None and array.shape[1] != arrays[0].shape[1]:
            raise UsageError(
                f"signals[{number}]: has {array.shape[1]} samples where the first has {arrays[0].shape[1]}; give "
                "window_seconds to cut frames of one length"
            )
    return arrays
