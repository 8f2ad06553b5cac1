"""Where a publisher's folder lies under a data root."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clops_sweep.data.folder import one_sentence, shorten
from clops_sweep.data.reader import Source
from clops_sweep.errors import BadInput


def find_folder(data_root: Path | None, names: Sequence[str], patterns: Sequence[str], dataset: str) -> Path:
    """The first of `data_root / name` that exists, or `data_root` itself if it holds files of the patterns.

    Raises:
        BadInput: no data root given, no such folder, or nothing in it that the patterns match.
    """
    looked_for = " or ".join(f"{name}/" for name in names)
    if data_root is None:
        raise BadInput(f"{dataset} needs the folder that holds {looked_for}; give it with --data-root DIR")
    with one_sentence(data_root):
        if not data_root.is_dir():
            raise BadInput(
                f"data root {shorten(data_root)}: there is no such folder; give the one that holds {looked_for}"
            )
        for name in names:
            folder = data_root / name
            if folder.is_dir():
                if any(next(folder.glob(pattern), None) for pattern in patterns):
                    return folder
                raise BadInput(
                    f"{shorten(folder)}: the folder holds no {' or '.join(patterns)}; download {dataset} into it"
                )
        if any(next(data_root.glob(pattern), None) for pattern in patterns):
            return data_root
    raise BadInput(
        f"data root {shorten(data_root)}: holds neither {looked_for} nor {patterns[0]}; download {dataset} there"
    )


def recording_names(folder: Path, suffixes: Sequence[str]) -> list[str]:
    """Names of all recordings of a WFDB folder, sorted: by its files, and by its RECORDS list if it has one.

    A recording of which only one file has arrived is therefore noticed and not silently left out.
    """
    found = {path.stem for suffix in suffixes for path in folder.glob(f"*{suffix}")}
    listed = folder / "RECORDS"
    if listed.is_file():
        found |= {Path(line).name for line in listed.read_text(errors="replace").split()}
    return sorted(found)


def wfdb_sources(folder: Path, signal_suffix: str) -> list[Source]:
    """The records of a folder and of those below it, each with its header and its signal file, sorted by name.

    A signal file without a header is a source too, so that it is noticed.
    """
    stems = {path.with_suffix("") for suffix in (".hea", signal_suffix) for path in folder.rglob(f"*{suffix}")}
    return [
        Source(stem.name, (stem.with_name(f"{stem.name}.hea"), stem.with_name(f"{stem.name}{signal_suffix}")))
        for stem in sorted(stems, key=lambda stem: (stem.name, str(stem)))
    ]
