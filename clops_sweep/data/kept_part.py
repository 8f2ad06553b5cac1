"""A part: what was read of several records in one file, of which damage shows.

The file holds the SHA-256 of a heading, its length (8 bytes), the heading as JSON (what stands for each record, names,
types and shapes of its arrays, and the SHA-256 of them all), and the arrays, each from a multiple of 8 bytes on.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.reader import Signals
from clops_sweep.data.reading import FramesRead

_SIGNALS = ("stored", "gain", "offset", "missing")


def write(path: Path, results: Sequence[tuple[str, FramesRead]]) -> None:
    """Writes what was read of records, with a mark that stands for each."""
    digest = hashlib.sha256()
    every: list[NDArray[Any]] = []
    records = []
    for mark, result in results:
        arrays = _arrays(result)
        for array in arrays.values():
            digest.update(array.data)
        every += arrays.values()
        recording = result.signals.recording
        records.append(
            {
                "mark": mark,
                "arrays": {name: [array.dtype.str, array.shape] for name, array in arrays.items()},
                "recording": None if recording is None else recording.hex(),
                "hashes": result.hashes,
            }
        )
    heading = json.dumps({"sha256": digest.hexdigest(), "records": records}).encode()
    heading += b" " * (-len(heading) % 8)
    with open(path, "wb") as file:
        file.write(hashlib.sha256(heading).digest() + len(heading).to_bytes(8, "big") + heading)
        for array in every:
            file.write(array.data)
            file.write(bytes(-array.nbytes % 8))


def marks(path: Path) -> list[str]:
    """What stands for each of the records in a part; empty where its heading is damaged."""
    with open(path, "rb") as file:
        size = path.stat().st_size - 40
        digest, length = file.read(32), int.from_bytes(file.read(8), "big")
        heading = file.read(min(length, max(size, 0)))
    if hashlib.sha256(heading).digest() != digest:
        return []
    return [record["mark"] for record in json.loads(heading)["records"]]


def read(path: Path) -> list[FramesRead]:
    """What was read of each of the records in a part, of which `marks` are there; empty where an array is damaged."""
    content = path.read_bytes()
    begin = 40 + int.from_bytes(content[32:40], "big")
    heading: dict[str, Any] = json.loads(content[40:begin])
    digest, results = hashlib.sha256(), []
    for record in heading["records"]:
        arrays: dict[str, NDArray[Any]] = {}
        for name, (kind, shape) in record["arrays"].items():
            count = math.prod(shape)
            if begin + count * np.dtype(kind).itemsize > len(content):
                return []
            arrays[name] = np.frombuffer(content, kind, count, begin).reshape(shape)
            digest.update(arrays[name].data)
            begin += arrays[name].nbytes + -arrays[name].nbytes % 8
        statistics = arrays.pop("statistics")
        recording = None if record["recording"] is None else bytes.fromhex(record["recording"])
        results.append(FramesRead(Signals(**arrays, recording=recording), statistics, record["hashes"]))
    return results if digest.hexdigest() == heading["sha256"] else []


def _arrays(result: FramesRead) -> dict[str, NDArray[Any]]:
    found = {name: getattr(result.signals, name) for name in _SIGNALS}
    every = {**found, "statistics": result.statistics}
    return {name: np.ascontiguousarray(array) for name, array in every.items() if array is not None}
