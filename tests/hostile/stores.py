"""Stores and prepared data that something else than this program has written, or where there is no file at all."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clops_sweep.cli.command import main
from clops_sweep.store.run_store import RunStore

from .data import NO_FILES, edited
from .engine import WORKER_STARTED, Case, Make

LAUNCH = ("launch", "space.py", "--no-report")
VERBS: Mapping[str, tuple[Sequence[str], tuple[int, ...]]] = {
    "status": (("status", "space.py"), (0, 2)),
    "plan": (("plan", "space.py", "--seeds", "2"), (0, 2)),
    "claims": (("claims",), (0, 2)),
    "check": (("check",), (0, 1, 2)),
    "merge": (("merge", "results", "--parts"), (0, 2)),
    "report": (("report", "space.py"), (0, 2)),
    "launch": (LAUNCH, (0, 1, 2, WORKER_STARTED)),
    "launch more": (("launch", "space.py", "--seeds", "2", "--no-report"), (2, WORKER_STARTED)),
    "launch search": (("launch", "search.py", "--no-report"), (0, 2, WORKER_STARTED)),
    "status search": (("status", "search.py"), (0, 2)),
    "report search": (("report", "search.py"), (0, 2)),
    "data verify": (("data", "verify", "synthetic"), (0, 2)),
    "data list": (("data", "list"), (0, 2)),
    "doctor": (("doctor",), (0, 2)),
}
"""Commands that look at a store, and the statuses that are an answer: it may be read all the same, or be mended."""

WRITES = ("results", "prepared")


def case(name: str, verb: str, files: Mapping[str, str | bytes | Make]) -> Case:
    """A command on a store of which some files are others."""
    if verb in ("show", "rerun"):
        return Case(f"{verb}: {name}", call=lambda: _of_first_run(verb), files=files, fine=(0, 2))
    command, fine = VERBS[verb]
    return Case(f"{verb}: {name}", command, files=files, fine=fine, may_write=WRITES)


def _of_first_run(verb: str) -> None:
    """A command about a run."""
    run_ids: list[str] = []
    with contextlib.suppress(Exception):
        run_ids = sorted(RunStore("results").recorded())
    main([verb, run_ids[0] if run_ids else "a" * 24])


# --- where there should be a file or folder ---------------------------------------------------------------------------


def _of_first_part(make: Make) -> Make:
    return lambda folder: make(sorted(folder.glob("*.parquet"))[0])


def _replaced(make: Make) -> Make:
    """Puts something in the place of a folder."""

    def replace(path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            path.rename(path.with_name(f".{path.name}-before"))
        make(path)

    return replace


def _copied(path: Path) -> None:
    """A prepared folder whose files can be replaced: links to those of the one that all cases share."""
    shared = path.resolve()
    path.unlink()
    path.mkdir()
    for file in shared.iterdir():
        (path / file.name).symlink_to(file)


def _written(content: bytes) -> Make:
    def write(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(content)

    return write


BYTES: Mapping[str, Make] = {"an empty file": _written(b""), "noise": _written(bytes(range(1, 256)) * 20)}
FOLDERS = ("results", "results/runs", "results/r_matrix", "results/.work", "results/.work/logs", "results/.work/checkpoints",
           "results/.work/locks", "results/.work/damaged", "results/report", "prepared", "prepared/synthetic")  # fmt: skip
PART = f"20260101T000000-{'0' * 8}-000001-{'0' * 16}.parquet"
FILES = (f"results/runs/{PART}", f"results/curves/{PART}", "results/.work/verified.json", "results/.work/lock", "results/optuna.journal", "space.py")  # fmt: skip
PREPARED = ("manifest.json", "files.json", "sources.json", "frames.npy", "index.parquet")


def no_files() -> Iterator[Case]:
    """FIFOs, devices, links and folders where files should be, and files where folders should be."""
    for what, make in {**NO_FILES, **BYTES}.items():
        for place in FOLDERS:
            if what == "a folder":
                continue
            for verb in (
                ("status", "launch more", "data list")
                if place.startswith("prepared")
                else ("status", "check", "launch")
            ):
                yield case(f"{place} is {what}", verb, {place: _replaced(make)})
        for place in FILES:
            for verb in ("plan", "merge", "launch search" if place.endswith("db") else "launch"):
                yield case(f"{place} is {what}", verb, {place: make})
        for verb in ("status", "show", "check", "claims", "launch"):
            yield case(f"a part is {what}", verb, {"results/runs": _of_first_part(make)})
        for name in PREPARED:
            for verb in ("plan", "data verify"):
                yield case(
                    f"{name} is {what}", verb, {"prepared/synthetic": _copied, f"prepared/synthetic/{name}": make}
                )


# --- JSON -------------------------------------------------------------------------------------------------------------

JSON = ["", "{", "[" * 100_000, '{"a":' * 100_000, "null", "3", '"x"', "[]", "{}", "[[]]", "9" * 5000, "NaN", "[1e999]", '{"a": null}',
        '{"runs/x": 3}', '{"\\ud800": 3}']  # fmt: skip
MANIFEST = [None, 3, -1, [], {}, "x", "\x1b[2J", [None], 10**30, {"a": {"b": []}}]


def _mark(value: str) -> Make:
    """`verified.json` with this value for each part that there is."""

    def write(path: Path) -> None:
        parts = [f"{part.parent.name}/{part.name}" for part in path.parents[1].rglob("*.parquet")]
        _written(("{" + ", ".join(f'"{name}": {value}' for name in parts) + "}").encode())(path)

    return write


def _manifest(key: str, value: Any) -> Make:
    return _rewritten(lambda known: known | {key: value})


def _rewritten(change: Callable[[dict[str, Any]], Any]) -> Make:
    def write(path: Path) -> None:
        known = json.loads(path.read_bytes())
        _written(json.dumps(change(known)).encode())(path)

    return write


KEYS = ("format_version", "name", "reader_version", "options", "on_error", "unit", "classes", "lead_names", "patient_names", "frames",
        "counts", "dropped", "skipped", "notes", "files", "content_hash", "data_hash", "samples", "sampling_rate", "frame_seconds",
        "domains", "given_split", "whole_moments", "fingerprint", "info")  # fmt: skip


def json_files() -> Iterator[Case]:
    """What is remembered as JSON, with other content: beside the store, beside the report, in prepared folders."""
    for content in JSON:
        for verb in ("plan", "launch"):
            yield case(f"verified.json is {content[:20]!r}", verb, {"results/.work/verified.json": content})
    for value in ("null", "3", '"x"', "[1]", '["a", "b"]', "{}", "[1e999, 1]", "[" * 500 + "]" * 500):
        yield case(f"every mark is {value[:20]}", "launch", {"results/.work/verified.json": _mark(value)})
    for content in JSON:
        yield case(f".kept.json is {content[:20]!r}", "report", {"results/report/space/.kept.json": content})
    for name in ("manifest.json", "files.json", "sources.json"):
        for content in JSON:
            files = {"prepared/synthetic": _copied, f"prepared/synthetic/{name}": _written(content.encode())}
            for verb in ("plan", "data verify"):
                yield case(f"{name} is {content[:20]!r}", verb, files)
    for key in KEYS:
        for value in MANIFEST:
            files = {"prepared/synthetic": _copied, "prepared/synthetic/manifest.json": _manifest(key, value)}
            yield case(f"{key} in manifest.json is {json.dumps(value)[:30]}", "plan", files)
        files = {
            "prepared/synthetic": _copied,
            "prepared/synthetic/manifest.json": _rewritten(
                lambda known, key=key: {k: v for k, v in known.items() if k != key}
            ),
        }
        yield case(f"manifest.json has no {key}", "plan", files)


def _unsealed(change: Callable[[pa.Table], pa.Table]) -> Make:
    def write(path: Path) -> None:
        pq.write_table(change(pq.ParquetFile(path).read()), path)

    return write


def _footer_length(length: int) -> Callable[[bytes], bytes]:
    return lambda whole: whole[:-8] + length.to_bytes(4, "little") + whole[-4:]


PARTS: Mapping[str, Make] = {
    "half of it": edited(lambda whole: whole[: len(whole) // 2]),
    "the magic alone": edited(lambda whole: b"PAR1"),
    "the magic twice": edited(lambda whole: b"PAR1PAR1"),
    "no magic": edited(lambda whole: whole[:-4] + b"XXXX"),
    "a footer of no length": edited(_footer_length(0)),
    "a footer longer than the file": edited(_footer_length(2**31)),
    "a footer of the longest length": edited(_footer_length(2**32 - 1)),
    "a flipped bit": edited(lambda whole: whole[:500] + bytes([whole[500] ^ 4]) + whole[501:]),
    "zeros": edited(lambda whole: bytes(len(whole))),
    "no seal": _unsealed(lambda content: content),
    "a column twice": _unsealed(lambda content: content.append_column(content.column_names[0], content[0])),
    "a column less": _unsealed(lambda content: content.drop_columns([content.column_names[0]])),
    "no column": _unsealed(lambda content: pa.table({})),
    "text for numbers": _unsealed(lambda content: content.set_column(0, "seed", pa.array(["x"] * content.num_rows))),
    "rows without end": _unsealed(lambda content: pa.concat_tables([content] * 10_000)),
    "an Arrow file": lambda path: _written(b"ARROW1\0\0" + b"\xff" * 400)(path),
    "an encrypted file": edited(lambda whole: whole[:-4] + b"PARE"),
}


ARRAYS: Mapping[str, Make] = {
    "half of it": edited(lambda whole: whole[: len(whole) // 2]),
    "text": lambda path: np.save(path, np.full(3, "x")),
    "another shape": lambda path: np.save(path, np.zeros((3, 3, 3), np.int16)),
    "objects": lambda path: np.save(path, np.array([{}], object), allow_pickle=True),
    "other bytes": edited(lambda whole: whole[:-8] + b"\xff" * 8),
}
INDEX_COLUMNS = ("patient", "record", "lead", "start", "label", "split", "gain", "offset", "minimum", "maximum", "mean",
                 "deviation")  # fmt: skip
INDEX_VALUES = ("", "\x1b[2J", "no such", -1, 2**62, float("nan"), float("inf"))


def _own_copy(make: Make) -> Make:
    def change(path: Path) -> None:
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
        make(path)

    return change


def _other_values(name: str, value: Any) -> Make:
    """One column of a Parquet file holds this value in every row, or is gone where the value is None."""

    def change(content: pa.Table) -> pa.Table:
        if value is None:
            return content.drop_columns([name])
        return content.set_column(content.schema.get_field_index(name), name, pa.array([value] * content.num_rows))

    return _unsealed(change)


def prepared_arrays() -> Iterator[Case]:
    """Frames and the table beside them with other content."""
    changes: dict[str, tuple[str, Make]] = {
        f"frames.npy: {what}": ("frames.npy", make) for what, make in ARRAYS.items()
    }
    changes |= {f"index.parquet: {what}": ("index.parquet", make) for what, make in PARTS.items()}
    for name in INDEX_COLUMNS:
        for value in (None, *INDEX_VALUES):
            changes[f"{name} in index.parquet: {value!r}"] = ("index.parquet", _other_values(name, value))
    for what, (file, make) in changes.items():
        files = {"prepared/synthetic": _copied, f"prepared/synthetic/{file}": _own_copy(make)}
        for verb in ("launch more", "data verify"):
            yield case(what, verb, files)


# --- parts ------------------------------------------------------------------------------------------------------------


def parts() -> Iterator[Case]:
    """Parts that are no parts, by their bytes and footers; compacted ones whose names and lists say something else."""
    for what, make in PARTS.items():
        for verb in ("status", "show", "check", "merge", "claims", "launch"):
            yield case(f"a part: {what}", verb, {"results/runs": _of_first_part(make)})
        for verb in ("status", "check", "merge", "launch"):
            yield case(f"{PART}: {what}", verb, {"results/runs": _copied_part(PART, make)})
    for name in (
        "x.parquet",
        f"{'9' * 200}.parquet",
        PART.replace("0101", "9999"),
        PART.replace("T", "t"),
        f"finished-{'a' * 24}.parquet",
    ):
        for verb in ("status", "check", "merge", "launch"):
            yield case(f"a part called {name[:30]}", verb, {"results/runs": _copied_part(name, lambda path: None)})


def _copied_part(name: str, make: Make) -> Make:
    def copy(folder: Path) -> None:
        path = folder / name
        path.write_bytes(sorted(folder.glob("*.parquet"))[0].read_bytes())
        make(path)

    return copy


# --- studies ----------------------------------------------------------------------------------------------------------

EDITS = {
    "the name of the study": (rb'"study_name":"[^"]*"', rb'"study_name":"x"'), "a direction": (rb'"directions":\[2\]', rb'"directions":[7]'),
    "an operation": (rb'"op_code":\d+', rb'"op_code":99'), "a deep attribute": (rb'"user_attr":\{', rb'"user_attr":{"a":' + b"[" * 5000 + b"]" * 5000 + b","),
    "a definition": (rb'"definition":\{', rb'"definition":null,"x":{'), "a state": (rb'"state":\d', rb'"state":9'),
    "a value": (rb'"values":\[[^]]*\]', rb'"values":["x"]'), "a parameter": (rb'"param_name":"[^"]*"', rb'"param_name":"x"'),
    "a distribution": (rb'"distribution":"', rb'"distribution":"{{'), "a run": (rb'"run_ids":\[', rb'"run_ids":["../../x",'), "a time": (rb'"datetime_start":"', rb'"datetime_start":"x'),
}  # fmt: skip


def _edited_study(pattern: bytes, replacement: bytes) -> Make:
    def edit(path: Path) -> None:
        path.write_bytes(re.sub(pattern, replacement, path.read_bytes()))

    return edit


def studies() -> Iterator[Case]:
    """The journal of a study, edited by something else than Optuna."""
    for what, edit in EDITS.items():
        for verb in ("status search", "launch search", "report search"):
            yield case(f"optuna.journal: {what}", verb, {"results/optuna.journal": _edited_study(*edit)})
    for what, change in {
        "half of it": lambda whole: whole[: len(whole) // 2],
        "noise in its middle": lambda whole: whole[:300] + b"\xa5" * 300 + whole[600:],
    }.items():
        for verb in ("status search", "launch search", "report search", "doctor"):
            yield case(f"optuna.journal: {what}", verb, {"results/optuna.journal": edited(change)})
