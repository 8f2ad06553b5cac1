"""Find a publisher's folder under a data root."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clops_sweep.data.files.checksums import listed_below
from clops_sweep.data.files.folder import one_sentence, shorten, visible
from clops_sweep.errors import AbsentData, option


def find_folder(
    data_root: Path | None, names: Sequence[str], dataset: str, holds: Sequence[str], itself: Sequence[str]
) -> Path:
    """Return the first of `data_root / name` with a file that matches one of the patterns `holds`.

    `data_root` itself is returned if it matches `itself`: patterns that match no other data set and nothing in the
    folders of other data sets.

    Raises:
        AbsentData: no data root is given, the folder is missing, or no file in it matches.
    """
    looked_for = " or ".join(f"{name}/" for name in names)
    if data_root is None:
        raise AbsentData(
            f"{dataset} needs the folder that holds {looked_for}; give it with {option('data_root', 'DIR')}"
        )
    with one_sentence(data_root):
        if not data_root.is_dir():
            raise AbsentData(
                f"data root {shorten(data_root)}: there is no such folder; give the one that holds {looked_for}"
            )
        present = [folder for name in names if (folder := data_root / name).is_dir()]
        for folder, patterns in (*((folder, holds) for folder in present), (data_root, itself)):
            if any(next(folder.glob(pattern), None) for pattern in patterns):
                return folder
    if present:
        raise AbsentData(f"{shorten(present[0])}: the folder holds no {' or '.join(holds)}; download {dataset} into it")
    files = (itself or holds)[0]
    raise AbsentData(
        f"data root {shorten(data_root)}: holds neither {looked_for} nor {files}; download {dataset} there"
    )


def recording_names(folder: Path) -> list[str]:
    """Return the sorted names of all recordings of a WFDB folder: from its files, its RECORDS list and its checksums.

    So a recording with missing files is reported and not silently left out. Annotations alone do not make a recording:
    the MIT-BIH Arrhythmia Database has some (102-0.atr) that belong to another recording.
    """
    names = {path.stem for suffix in (".hea", ".dat") for path in visible(folder.glob(f"*{suffix}"), folder)}
    names |= {path.stem for path in listed_below(folder) if path.parent == folder and path.suffix == ".hea"}
    listed = folder / "RECORDS"
    if listed.is_file():
        names |= {Path(line).name for line in listed.read_text(errors="replace").split()}
    return sorted(names)


def wfdb_files(folder: Path, signal_suffix: str) -> list[tuple[str, tuple[Path, Path]]]:
    """Return the sorted names of all records of a folder and its subfolders, each with its header and its signal file.

    A signal file without a header is a record too, and so is a record that the publisher lists, so that missing files
    are reported.
    """
    suffixes = (".hea", signal_suffix)
    stems = {path.with_suffix("") for suffix in suffixes for path in visible(folder.rglob(f"*{suffix}"), folder)}
    stems |= {path.with_suffix("") for path in listed_below(folder) if path.suffix in suffixes}
    return [
        (stem.name, (stem.with_name(f"{stem.name}.hea"), stem.with_name(f"{stem.name}{signal_suffix}")))
        for stem in sorted(stems, key=lambda stem: (stem.name, str(stem)))
    ]
