"""Fetching what PhysioNet gives out openly, through wfdb's downloader, which goes on where it stopped."""

from __future__ import annotations

import contextlib
import csv
import io
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.folder import one_sentence
from clops_sweep.data.wfdb_records import load_wfdb
from clops_sweep.errors import BadInput

_AT_ONCE: Final = 40
_CHALLENGE_FOLDER: Final = "training/cpsc_2018"


@dataclass(frozen=True)
class Part:
    """Files of one PhysioNet project that go to one folder; `list_files` may look at what is already there."""

    project: str
    folder: str
    list_files: Callable[[Path], Sequence[str]]
    keep_folders: bool = False


def _records_of(project: str, *suffixes: str) -> Callable[[Path], Sequence[str]]:
    def list_files(folder: Path) -> Sequence[str]:
        records = load_wfdb().get_record_list(project)
        return ["RECORDS", "SHA256SUMS.txt", *(f"{record}{suffix}" for record in records for suffix in suffixes)]

    return list_files


def _ptbxl_records(folder: Path) -> Sequence[str]:
    """The 500 Hz files, by the table that has been fetched before."""
    with open(folder / "ptbxl_database.csv", newline="", encoding="utf-8") as file:
        stems = [row["filename_hr"] for row in csv.DictReader(file)]
    return [f"{stem}{suffix}" for stem in stems for suffix in (".hea", ".dat")]


def _challenge_records(folder: Path) -> Sequence[str]:
    """The CPSC part of the training set, which is listed folder by folder."""
    wfdb = load_wfdb()
    base = posixpath.join("challenge-2020", wfdb.io.download.get_version("challenge-2020"))

    def below(place: str) -> Iterator[str]:
        for name in wfdb.get_record_list(posixpath.join(base, place)):
            if name.endswith("/"):
                yield from below(posixpath.join(place, name))
            else:
                yield posixpath.join(place, name)

    return [f"{record}{suffix}" for record in below(_CHALLENGE_FOLDER) for suffix in (".hea", ".mat")]


_MITDB: Final = Part("mitdb", "mitdb", _records_of("mitdb", ".hea", ".dat", ".atr"))
_VFDB: Final = Part("vfdb", "vfdb", _records_of("vfdb", ".hea", ".dat", ".atr"))

DOWNLOADS: Final[Mapping[str, Sequence[Part]]] = {
    "mitbih": (_MITDB,),
    "mitbih_vfdb": (_MITDB, _VFDB),
    "ptbxl": (
        Part("ptb-xl", "ptbxl", lambda _: ["ptbxl_database.csv", "scp_statements.csv", "SHA256SUMS.txt"], True),
        Part("ptb-xl", "ptbxl", _ptbxl_records, True),
    ),
    "physionet2020": (Part("challenge-2020", "cpsc2018", _challenge_records),),
}


def download(name: str, data_root: Path, progress: bool = False) -> list[Path]:
    """Fetches a data set into its folders under `data_root`; returns those folders.

    Files that are there with their full size are passed over, shorter ones are completed.

    Raises:
        BadInput: the data set is not to be downloaded openly (where to get it is said), or PhysioNet is out of reach.
    """
    if name not in DATASETS:
        raise BadInput(f"dataset {name!r} is not known; known: {', '.join(DATASETS)}")
    info = DATASETS[name]
    if name not in DOWNLOADS:
        if not info.folders:
            raise BadInput(f"{name} is generated, not downloaded; run 'clops-sweep data prepare {name}'")
        raise BadInput(
            f"{name} cannot be downloaded openly ({info.licence}); get it from {info.source} and put it into "
            f"{info.folders[0]}/ under the data root"
        )
    folders = []
    for part in DOWNLOADS[name]:
        folder = data_root / part.folder
        with one_sentence(folder):
            folder.mkdir(parents=True, exist_ok=True)
        _fetch(part, folder, progress)
        folders.append(folder)
    return list(dict.fromkeys(folders))


def _fetch(part: Part, folder: Path, progress: bool) -> None:
    wfdb = load_wfdb()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            files = list(part.list_files(folder))
            batches = [files[first : first + _AT_ONCE] for first in range(0, len(files), _AT_ONCE)]
        for batch in _shown(batches, part.folder, progress):
            with contextlib.redirect_stdout(io.StringIO()):
                wfdb.dl_files(part.project, str(folder), batch, keep_subdirs=part.keep_folders)
    except BadInput:
        raise
    except Exception as error:  # from DNS to HTTP, and whatever wfdb makes of it
        reason = type(error).__name__
        if isinstance(error, OSError) and error.errno and error.filename:
            with one_sentence(folder):
                raise
        raise BadInput(
            f"physionet.org cannot be reached or does not have {part.project} ({reason}); check the network and "
            "run the same command again, it goes on where it stopped"
        ) from None


def _shown(batches: list[list[str]], name: str, progress: bool) -> Iterator[list[str]]:
    if not progress:
        yield from batches
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(batches, description=f"downloading {name}", console=Console(stderr=True), transient=True)
