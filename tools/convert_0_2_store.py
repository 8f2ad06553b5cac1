"""Copy the runs of a store of clops-sweep 0.2 into a new one: ``python tools/convert_0_2_store.py OLD NEW``.

Run ids and numbers stay as they are. OLD is not changed; files beside its tables (models, studies, claims) are copied.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clops_sweep.store.parts import conform, rows_of, union
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS, TableName
from clops_sweep.store.writing import RUNS_PER_PART, commit

_PART = re.compile(r"(?:finished|failed)-[0-9a-f]+\.parquet|compact-\d+-[0-9a-f]+\.parquet")


def read(folder: Path, table: TableName) -> pa.Table:
    """Return all rows of a table; of a run in several parts, those of the largest part."""
    paths = [path for path in sorted(folder.glob("*.parquet")) if _PART.fullmatch(path.name)]
    parts = sorted((pq.ParquetFile(path).read() for path in paths), key=lambda part: -part.num_rows)
    schema = union(table, (part.schema.remove_metadata() for part in parts))
    taken = pa.array([], pa.string())
    rows = []
    for part in parts:
        found = conform(part, schema)
        rows.append(found.filter(pc.invert(pc.is_in(found["run_id"], taken))))
        taken = pc.unique(pa.concat_arrays([taken, *found["run_id"].chunks]))
    return pa.concat_tables([schema.empty_table(), *rows])


def without_repaired(runs: pa.Table) -> pa.Table:
    """Return the rows of `runs` without failures of runs that have finished since."""
    finished = runs.filter(pc.equal(runs["status"], "finished"))["run_id"]
    repaired = pc.and_(pc.equal(runs["status"], "failed"), pc.is_in(runs["run_id"], finished.combine_chunks()))
    return runs.filter(pc.invert(repaired))


def convert(old: Path, new: Path) -> int:
    """Copy the runs of a store, and return their number."""
    if new.exists():
        raise SystemExit(f"{new}: exists; give a new folder")
    tables = {table: read(old / table, table) for table in SCHEMAS}
    tables["runs"] = without_repaired(tables["runs"])
    schemas = {table: rows.schema for table, rows in tables.items()}
    run_ids = sorted(tables["runs"]["run_id"].to_pylist())
    store = RunStore(new, keep=["predictions"] if tables["predictions"].num_rows else [])
    store.open_for_writing()
    with store.locked():
        for start in range(0, len(run_ids), RUNS_PER_PART):
            few = set(run_ids[start : start + RUNS_PER_PART])
            commit(store, [], schemas, {table: [rows_of(rows, few)] for table, rows in tables.items()})
    for path in old.iterdir():
        if path.name not in SCHEMAS and not path.name.startswith("."):
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, new / path.name)
    return len(run_ids)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    print(f"{convert(Path(sys.argv[1]), Path(sys.argv[2]))} runs copied")
