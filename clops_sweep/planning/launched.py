"""The search spaces of launches, which a store remembers in `.work/spaces`, without searches."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from clops_sweep.data.catalog import DATASETS
from clops_sweep.errors import UsageError, one_line
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import REGISTRIES, STORED_RUN
from clops_sweep.experiment.spaces.axes import Axes, fields_of
from clops_sweep.experiment.spaces.claims import sha256
from clops_sweep.experiment.spaces.search_space import ReportedGrid, SearchSpace
from clops_sweep.experiment.spaces.selection import Selection, check_names, file_name
from clops_sweep.store.run_store import RunStore

_DIGEST = 8
"""Number of hexadecimal digits of a digest in names."""

_LONGEST_NAME = 100
"""Bytes of a name at most, as of any search space."""

_DAMAGED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""Errors of a file that is no JSON, or JSON of another form."""


Edition = Callable[[str], str | None]
"""Returns the `prepared_hash` of a data set; None if it is not prepared."""


def remember(selection: Selection, store: RunStore, edition: Edition = lambda dataset: None) -> None:
    """Store the search spaces of a launch, with the runs that its `where` and `limit` leave out.

    A space replaces an earlier one of the same name and settings, unless that one is of another search-space file,
    which still exists: then both are kept. A launch with fewer `seeds` than an earlier one of the same space keeps the
    other seeds. Searches, and spaces whose values are no JSON, are not stored.

    The places of the search-space files, the sentences of their claims, the fields that tuning chose, and the editions
    of the data are stored with each space.

    Args:
        selection: the search spaces.
        store: the store.
        edition: returns the edition of a data set that the launch uses.
    """
    settings = [f"{name}={value}" for name, value in sorted(selection.settings.items())]
    files = [_place(file, store) for file in selection.files]
    claims = [claim.sentence for claim in selection.claims]
    for space in selection.spaces:
        if space.search is not None or space.resolve is not None:
            continue
        name, identity = _name(space, settings), [space.name, *settings]
        with suppress(TypeError, ValueError, OSError):
            of_space = {"name": name, "base": space.base.explicit, "files": files, "claims": claims}
            if isinstance(space, ReportedGrid):
                of_space["tuned_fields"] = {method: list(names) for method, names in space.tuned_fields.items()}
            datasets = dict.fromkeys(request.config.dataset for request in space.requests())
            of_space["prepared"] = {dataset: edition(dataset) for dataset in datasets}
            content = json.loads(json.dumps({**of_space, **_grid(space)}))
            digest = sha256(identity)[:_DIGEST]
            path = _path(store, name, digest)
            if _is_of_another_file(_remembered(store, path), content, store):
                digest = sha256([identity, files])[:_DIGEST]
                path = _path(store, name, digest)
            content["digest"] = digest
            if selection.seeds is not None:
                content = _with_earlier_seeds(content, _remembered(store, path))
            store.files.make_folder(_folder(store))
            store.files.write(path, json.dumps(content).encode())


def _path(store: RunStore, name: str, digest: str) -> str:
    """Return the path of a remembered space, whose file name ends with the digest of its name and settings.

    Earlier versions left the digest out, and other spaces could have the same file. A file of theirs with the full name
    of the space stays in use.
    """
    earlier = f"{_folder(store)}/space-{file_name(name)}.json"
    content = _remembered(store, earlier)
    is_of_space = content.get("name") == name and len(name.encode()) < _LONGEST_NAME
    if content.get("digest", digest if is_of_space else None) == digest:
        return earlier
    return f"{_folder(store)}/space-{file_name(name)}-{digest}.json"


def _place(file: Path, store: RunStore) -> str:
    """Return the path of a search-space file from the folder around a local store, else from the current folder."""
    return Path(os.path.relpath(file.resolve(), _start(store))).as_posix()


def _start(store: RunStore) -> Path:
    """Return the folder that places of search-space files are relative to."""
    folder = store.files.folder
    return (Path.cwd() if folder is None else folder.parent).resolve()


def _is_of_another_file(earlier: Mapping[str, Any], content: Mapping[str, Any], store: RunStore) -> bool:
    """Return whether a remembered space is of another search-space file than a new one, and asks for other runs.

    A file that is no longer in its place was moved, renamed or deleted: a space of its name replaces it.
    """
    before, now = earlier.get("files"), content["files"]
    if not isinstance(before, list) or not before or not now or set(map(str, before)) & set(now):
        return False
    if all(earlier.get(part) == content[part] for part in ("base", "axes", "seeds", "kept")):
        return False
    return any((_start(store) / str(relative)).is_file() for relative in before)


@dataclass(frozen=True)
class LaunchedFile:
    """A search-space file that was launched: its path, which need not exist any more, and its claims as sentences."""

    path: Path
    claims: tuple[str, ...] = ()


def launched_files(store: RunStore) -> list[LaunchedFile]:
    """Return the search-space files of the spaces that a store remembers, each once; damaged ones are left out.

    Claims of several files that were launched together are those of each of them.
    """
    claims_of: dict[Path, dict[str, None]] = {}
    with suppress(OSError, UsageError):
        for file in store.files.names(_folder(store)):
            content = _remembered(store, f"{_folder(store)}/{file}")
            with suppress(*_DAMAGED):
                for relative in content.get("files", []):
                    path = (_start(store) / str(relative)).resolve()
                    claims_of.setdefault(path, {}).update(dict.fromkeys(map(str, content.get("claims", []))))
    return [LaunchedFile(path, tuple(claims)) for path, claims in sorted(claims_of.items())]


def _remembered(store: RunStore, path: str) -> Mapping[str, Any]:
    """Return the content of a file of a remembered space; empty without a valid one."""
    with suppress(OSError, UsageError), suppress(*_DAMAGED):
        return dict(json.loads(store.files.read(path).to_pybytes()))
    return {}


def _with_earlier_seeds(content: dict[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Return a remembered space with the seeds of an earlier launch of the same space as well."""
    if any(earlier.get(name) != content[name] for name in ("base", "axes")):
        return content
    kept, earlier_kept = content["kept"], earlier.get("kept")
    if (kept is None) != (earlier_kept is None):
        return content
    with suppress(*_DAMAGED):
        seeds = sorted({*content["seeds"], *earlier["seeds"]})
        both = None if kept is None or earlier_kept is None else sorted({*kept, *earlier_kept})
        return content | {"seeds": seeds, "kept": both}
    return content


def _name(space: SearchSpace, settings: Sequence[str]) -> str:
    """Return a name that can stand in a file name: that of the space, with the settings of the launch."""
    text = ", ".join([space.name, *settings])
    return _shortened(re.sub(r"[/\\\0]", "-", text), _LONGEST_NAME)


def _shortened(name: str, size: int) -> str:
    """Return the first bytes of a name."""
    return name.encode()[:size].decode("utf-8", "ignore")


def _distinct(space: SearchSpace, digest: str, others: Sequence[SearchSpace]) -> SearchSpace:
    """Return a space with a name whose files differ from those of other spaces: if needed, it ends with its digest."""
    taken = {file_name(other.name).casefold() for other in others}
    if file_name(space.name).casefold() not in taken:
        return space
    return replace(space, name=f"{_shortened(space.name, _LONGEST_NAME - len(digest) - 1)} {digest}")


def _grid(space: SearchSpace) -> dict[str, Any]:
    """Return axes and seeds of a space as JSON, with the cells that its `where` keeps; None for all."""
    kept = None
    if space.where is not None:
        varied = _varied(space.axes)
        kept = [_cell(varied, request.asked) for request in space.requests()]
    return {"axes": space.axes, "seeds": space.seeds, "kept": kept}


@dataclass(frozen=True)
class LeftOutSpace:
    """A remembered search space that cannot be shown.

    Attributes:
        name: its name; None if its file is damaged or cannot be read.
        why: the reason, which names the file if there is no name.
        unknown: its plug-ins and data sets that are not registered here, as config field and name.
    """

    name: str | None
    why: str
    unknown: tuple[tuple[str, str], ...] = ()


def launched_spaces(store: RunStore, register: Callable[[str], object]) -> tuple[SearchSpace, ...]:
    """Return the search spaces that a store remembers, as far as their plug-ins are registered.

    Args:
        store: the store.
        register: registers a data set by name, if it is prepared here.
    """
    return tuple(space for space, _ in _launched(store, register)[0])


@dataclass(frozen=True)
class LaunchedOn:
    """What a store remembers of the last launch of a search space.

    Attributes:
        files: the names of its search-space files, without folders.
        prepared: the `prepared_hash` of each data set; empty for a launch of an earlier version.
    """

    files: frozenset[str]
    prepared: Mapping[str, str]


def launched_on(store: RunStore, register: Callable[[str], object]) -> dict[str, LaunchedOn]:
    """Return what a store remembers of the last launch of each of `launched_spaces`, by name."""
    launches = {}
    for space, remembered in _launched(store, register)[0]:
        files: frozenset[str] = frozenset()
        prepared: dict[str, str] = {}
        with suppress(*_DAMAGED):
            files = frozenset(Path(str(file)).name for file in remembered.get("files", []))
            for dataset, content in remembered.get("prepared", {}).items():
                if isinstance(content, str):
                    prepared[dataset] = content
        launches[space.name] = LaunchedOn(files, prepared)
    return launches


def left_out_spaces(store: RunStore, register: Callable[[str], object]) -> list[LeftOutSpace]:
    """Return the search spaces that a store remembers and `launched_spaces` leaves out."""
    _, left_out = _launched(store, register)
    return left_out


def launched_mark(store: RunStore) -> Hashable:
    """Return a value that changes when a launch stores a search space; empty without any."""
    with suppress(UsageError, OSError):
        marks = store.files.marks(_folder(store), store.files.names(_folder(store)))
        return tuple(sorted((name, *mark) for name, mark in marks.items()))
    return ()


_Remembered = tuple[SearchSpace, Mapping[str, Any]]
"""A remembered search space, and the content of its file."""


def _launched(store: RunStore, register: Callable[[str], object]) -> tuple[list[_Remembered], list[LeftOutSpace]]:
    """Return the remembered search spaces that can be shown, and the others."""
    try:
        names = store.files.names(_folder(store))
    except UsageError as error:
        return [], [LeftOutSpace(None, one_line(error))]
    spaces: list[SearchSpace] = []
    contents: list[Mapping[str, Any]] = []
    left_out: list[LeftOutSpace] = []
    same: list[dict[str, Any]] = []
    for file in names:
        path = f"{_folder(store)}/{file}"
        name = None
        remembered: Any = {}
        try:
            content = store.files.read(path).to_pybytes()
            remembered = json.loads(content)
            name, dataset = str(remembered["name"]), str(remembered["base"].get("dataset"))
            asked = {part: remembered.get(part) for part in ("name", "base", "axes", "seeds", "kept")}
            if asked in same:  # of a file that was moved
                continue
            same.append(asked)
            register(dataset)
            digest = str(remembered.get("digest", sha256(file)[:_DIGEST]))
            space = _distinct(_space(content), digest, spaces)
            check_names([*spaces, space])
        except (OSError, UsageError) as error:
            why = one_line(error)
            if name is None:
                left_out.append(LeftOutSpace(None, f"{path}: cannot be read ({why})"))
            else:
                left_out.append(LeftOutSpace(name, why, _unregistered(remembered)))
        except _DAMAGED:
            why = "damaged; delete it, and the next launch of its search space writes it again"
            left_out.append(LeftOutSpace(None, f"{path}: {why}"))
        else:
            spaces.append(space)
            contents.append(remembered)
    return list(zip(spaces, contents, strict=True)), left_out


def _unregistered(remembered: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the plug-ins and data sets of a remembered space that are not registered, as config field and name."""
    unknown = []
    for field, name in dict.fromkeys(_texts_set(remembered["base"], remembered.get("axes"))):
        registry = DATASETS if field == "dataset" else REGISTRIES.get(field)
        is_run = field == "encoder" and STORED_RUN.fullmatch(name) is not None
        if registry is not None and name not in registry and not is_run:
            unknown.append((field, name))
    return tuple(unknown)


def _texts_set(base: Any, axes: Any) -> Iterator[tuple[str, str]]:
    """Yield the config fields that are set to a text, each with the text; values of other forms are skipped."""
    settings = [base]
    for axis, values in axes.items() if isinstance(axes, Mapping) else ():
        if isinstance(values, Mapping):
            settings.extend(values.values())
        elif isinstance(values, list):
            settings.extend({axis: value} for value in values)
    for values in settings:
        for field, value in values.items() if isinstance(values, Mapping) else ():
            if isinstance(value, str):
                yield field, value


@lru_cache(maxsize=32)
def _space(content: bytes) -> SearchSpace:
    remembered = json.loads(content)
    name, axes, seeds = remembered["name"], remembered["axes"], remembered["seeds"]
    base = RunConfig.of(remembered["base"])
    space = SearchSpace(name, base, axes, seeds)
    if remembered.get("tuned_fields"):
        tuned = {method: tuple(map(str, names)) for method, names in remembered["tuned_fields"].items()}
        space = ReportedGrid(name, base, axes, seeds, tuned_fields=tuned)
    if remembered["kept"] is None:
        return space
    varied = _varied(axes)
    kept = frozenset(remembered["kept"])
    return replace(space, where=lambda config: _cell(varied, config) in kept)


def _varied(axes: Axes) -> list[str]:
    """Return the fields that axes set, each once."""
    return sorted(set(fields_of(axes)))


def _cell(varied: Sequence[str], config: RunConfig) -> str:
    """Return what tells a config from the others of its space."""
    return json.dumps([config.seed, *map(config.get, varied)])


def _folder(store: RunStore) -> str:
    return f"{store.work_folder}/spaces"
