"""Seals of claims: a file beside the results that records which claims were declared before the first run.

A seal belongs to search-space files by their places, so that an edited file keeps it and the edits are named. After a
file was moved or renamed, its seal is found by its content, the claims and the requested runs, or by the names of its
studies, unless the file that was sealed is still in its place: then another study has the same name.

The requested runs are those that the files determine: what a search has chosen is no part of a seal. What decides its
choice is: parameters, number of trials and sampler of each search, and the seeds on which a choice is reported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clops_sweep.errors import DamagedStore, UsageError, either, listed, several, shown
from clops_sweep.experiment.provenance import changed_since, plugins_of
from clops_sweep.experiment.spaces.claims import claims_as_json, fields_not_in, sha256
from clops_sweep.experiment.spaces.grid import RunRequest
from clops_sweep.experiment.spaces.search_space import SearchSpace, search_of
from clops_sweep.experiment.spaces.selection import file_name
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.search import definition
from clops_sweep.store.run_store import RunStore


@dataclass(frozen=True)
class Sealed:
    """The content of a seal.

    Attributes:
        path: path of the file.
        content: `sealed_at`, `claims` by key, `space` (SHA-256 of the identities of the runs), `runs` (their number),
            `data` (content hashes of the data) and, since version 0.4, `studies` and `files`, their places relative to
            the parent of the store's folder, `settings` (see `_settings`), `searches` (see `_search`) and `reported`
            (seeds by tuned space) and `code`
            (see `_code`). `runs` is the number of `space`: with a search, it is no number of requested runs, since the
            configs at the bounds of a search are in it. `sizes` (in words by tuned space) tells that.
        is_moved: whether the files were elsewhere when they were sealed.
    """

    path: str
    content: dict[str, Any]
    is_moved: bool = False

    def changes(self, request: Request) -> list[str]:
        """Return the differences between the seal and the current search-space files, one phrase each.

        Data that are not prepared on this machine are not compared.

        Args:
            request: see `_without_choices`.
        """
        was, now = self.content, _content(request)
        before, after = was["claims"], self.claims_now(request)
        differences = [f"claim {key} was added" for key in sorted(after.keys() - before.keys())]
        differences += [f"claim {key} was removed" for key in sorted(before.keys() - after.keys())]
        differences += [
            f"claim {key} was edited" for key in sorted(before.keys() & after.keys()) if before[key] != after[key]
        ]
        if was["space"] != now["space"]:
            differences.append(_other_runs(was, now))
        if self._has_searches:
            differences += _changes_of_searches(was["searches"], now["searches"])
            differences += _changes_of_seeds(was["reported"], now["reported"])
        if not set(now["data"]) <= set(was["data"]):
            differences.append("the data differ")
        differences += _changes_of_code(request, was.get("code", {}))
        return differences

    def claims_now(self, request: Request) -> dict[str, Any]:
        """Return the claims of a request as JSON, with the fields that the seal holds."""
        return claims_as_json(request.selection.claims, fields_not_in(self.content["claims"]))

    def unknown(self, request: Request) -> str:
        """Return what the seal does not hold of a request, since an earlier version wrote it; empty for nothing."""
        unknown = [f"the {name} of claims" for name in fields_not_in(self.content["claims"])]
        if not self._has_searches and (request.selection.searches or request.selection.tuned):
            unknown += ["searches", "the seeds of tuned spaces"]
        if "code" not in self.content and _code(request):
            unknown.append("the code of plug-ins")
        if not unknown:
            return ""
        changes = " and ".join(f"of {what}" for what in unknown)
        return f"an earlier version wrote it, so changes {changes} are not known"

    @property
    def _has_searches(self) -> bool:
        return "searches" in self.content

    def __str__(self) -> str:
        words = f"sealed on {self.content['sealed_at'][:16].replace('T', ' at ')} UTC, before the first run"
        files = self.content.get("files", [])
        return f"{words}, as {listed(files)}" if self.is_moved and files else words


def seal(request: Request, check: Callable[[State], object] = lambda state: None) -> Sealed:
    """Write the seal of the claims of some search-space files, before their first run.

    A seal holds the hashes of the data: those that are not prepared are prepared, with their splits and features.

    Args:
        request: the request of the files.
        check: raises a UsageError if a launch would refuse the request; a seal is for good.

    Raises:
        UsageError: there are no claims, data cannot be prepared, a launch would refuse the request, a run or trial has
            ended, or a seal exists.
        DamagedStore: a seal exists and was edited.
    """
    if not request.selection.claims:
        raise UsageError(f"{_called()}: expected a search-space file that defines CLAIMS")
    asked = _without_choices(State.of(request))
    if (there := _sealed(asked)) is not None:
        raise UsageError(f"{there.path}: these claims are {there}; a seal is never replaced")
    if first := asked.selection.encoders:
        raise UsageError(
            f"{_called()}: encoder = {shown(first[0])} is a config, and a seal holds the hash of its features; "
            "expected 'run:RUN_ID' of a finished run"
        )
    request.data.prepare(config.data_key for config in asked.selection.configs if request.data_hash(config) is None)
    state = State.of(request)
    asked = _without_choices(state)  # orders by names of tasks are positions as soon as the data are prepared
    check(state)
    state.check_data_of_studies()
    if ended := len(_ended(state)):
        raise UsageError(
            f"{_called()}: {several(ended, 'run')} of this file ended already; claims are sealed before the first"
        )
    of_files = {"studies": list(request.selection.titles), "files": _places(request)}
    content = {"sealed_at": datetime.now(UTC).isoformat(timespec="seconds"), **_content(asked), **of_files}
    path = _path(request)
    request.store.files.make_folder(path.rpartition("/")[0])
    request.store.files.write(path, json.dumps({**content, "sha256": sha256(content)}, indent=1).encode())
    return Sealed(path, content)


def _called() -> str:
    return either("--seal", "seal_claims")


def seal_in_words(state: State) -> str:
    """Return whether the claims of a request are sealed, and what has changed since.

    Of several files that were not sealed together, the seal of each is told, those that are sealed first.

    Raises:
        DamagedStore: a seal was edited.
    """
    request = _without_choices(state)
    there = _sealed(request) if request.selection.claims else None
    if there is not None:
        return _standing(state, request, there)
    sealed: list[str] = []
    others: list[str] = []
    for of_file in _of_each_file(request):
        (file,) = of_file.selection.files
        own = _sealed(of_file)
        if own is None:
            others.append(f"{file.name}: not sealed")
        else:
            sealed.append(f"{_standing(state, of_file, own)} ({file.name})")
    return "; ".join([*sealed, *others]) if sealed else "not sealed"


def _of_each_file(request: Request) -> list[Request]:
    """Return the request of each file that has claims; none of a single file."""
    if len(request.selection.declared) < 2:
        return []
    selections = request.selection.of_each_file
    return [replace(request, selection=selection) for selection in selections if selection.claims]


def _standing(state: State, request: Request, there: Sealed) -> str:
    """Return when claims were sealed, and what has changed since.

    Args:
        state: the state of all requested files.
        request: the request of the files with the seal; see `_without_choices`.
        there: the seal.
    """
    words = [str(there)]
    if unknown := there.unknown(request):
        words.append(unknown)
    if changes := there.changes(request):
        words.append(f"changed since: {', '.join(changes)}")
    if others := _on_other_data(state, there):
        words.append(
            f"stored runs of {listed(others)} are on other data than the sealed, and none on the data as prepared "
            "here; prepare the data of these files to see the runs on them, if there are any"
        )
    return "; ".join(words)


def sealed_files(store: RunStore) -> list[str]:
    """Return the search-space files whose claims are sealed in a store, each once, sorted.

    Paths are relative to the current folder; those of an object store are as they were when the claims were sealed.
    """
    folder = f"{store.files.root}/claims"
    places: set[str] = set()
    for name in store.files.names(folder):
        content = _written(store, f"{folder}/{name}")
        if _is_intact(content):
            places.update(content.get("files", ()))
    if store.files.folder is None:
        return sorted(places)
    start = store.files.folder.parent
    return sorted(os.path.relpath(start / file) for file in places)


def planned_runs(state: State) -> frozenset[str]:
    """Return the ids of the runs that a seal planned, if the files now ask for more seeds or values of axes.

    Empty if nothing was added, if there is no seal, or if claims or other settings changed, too.

    Raises:
        DamagedStore: the seal was edited.
    """
    request = _without_choices(state)
    there = _sealed(request) if request.selection.claims else None
    if there is not None:
        return _planned(state, request, there)
    runs: frozenset[str] = frozenset()
    for of_file in _of_each_file(request):
        own = _sealed(of_file)
        if own is not None:
            runs |= _planned(state, of_file, own)
    return runs


def _planned(state: State, request: Request, there: Sealed) -> frozenset[str]:
    """Return the ids of the runs that a seal planned, if the files now ask for more; empty otherwise.

    Args:
        state: the state of all requested files.
        request: the request of the files with the seal; see `_without_choices`.
        there: the seal.
    """
    if there.claims_now(request) != there.content["claims"]:
        return frozenset()
    names = {space.name for space in request.selection.spaces}
    names |= {tuned.name for tuned in request.selection.tuned}
    settings, reported = there.content.get("settings", {}), there.content.get("reported", {})
    planned: set[str] = set()
    added: set[str] = set()
    of_grids: set[str] = set()
    for space in state.resolved.selection.spaces:
        if space.name not in names:
            continue
        for run in space.requests():
            was = settings.get(space.name)
            if was is not None:
                of_grids.add(run.config.identity)
                is_planned = _is_within(run, was)
            else:
                is_planned = run.config.seed in reported.get(space.name, ())
            (planned if is_planned else added).add(run.config.identity)
    added -= planned
    if not added:
        return frozenset()
    of_all = {config.identity for config in request.selection.configs}
    if sha256(sorted(of_all - (added & of_grids))) != there.content["space"]:
        return frozenset()
    return frozenset(str(run.run_id) for run in state.plan.asked if run.config.identity in planned)


def _is_within(run: RunRequest, settings: Mapping[str, Any]) -> bool:
    """Return whether a run has a seed and labels of a grid as it was sealed."""
    if run.config.seed not in settings["seeds"]:
        return False
    for axis, label in run.labels.items():
        if json.loads(json.dumps(label, default=str)) not in settings.get(f"axis {axis}", ()):
            return False
    return True


def _on_other_data(state: State, sealed: Sealed) -> list[str]:
    """Return the data sets with finished runs on data that a seal does not hold, and none on data as prepared here."""
    with_runs = {run.config.dataset for run in state.plan.of("finished")}
    datasets = {config.dataset for config in state.resolved.selection.configs} - with_runs
    others = set()
    if datasets:
        for row in state.resolved.store.rows("runs", ["dataset", "status", "data_hash"]):
            is_finished = row["status"] == "finished" and row["dataset"] in datasets
            if is_finished and row["data_hash"] not in sealed.content["data"]:
                others.add(row["dataset"])
    return sorted(others)


def _without_choices(state: State) -> Request:
    """Return a request as it was before its searches chose the runs to report, with the encoders that are trained."""
    request = state.resolved
    if not request.selection.reported:
        return request
    return replace(request, selection=replace(request.selection, reported=()))


def _ended(state: State) -> set[str]:
    """Return the runs that are finished or failed, and those of pruned trials: their results may be known."""
    statuses = state.resolved.store.statuses()
    ended = {str(run.run_id) for run in state.plan.asked if run.state in ("finished", "failed")}
    for search in state.searches:
        ended.update(run_id for run_id in search.run_ids if run_id in statuses)
        for trial in search.record.of("pruned") if search.record else ():
            ended.update(trial.run_ids)
    return ended


def _sealed(request: Request) -> Sealed | None:
    """Return the seal of the claims of some search-space files, also if these were moved; None without one.

    Raises:
        DamagedStore: the seal was edited.
    """
    store = request.store.files
    folder, ending = _folder(request), _ending(_places(request))
    written = sorted(store.names(folder))
    for name in written:
        if name.endswith(ending):  # perhaps under an earlier name of the study
            path = f"{folder}/{name}"
            content = _written(request.store, path)
            if not _is_intact(content):
                raise _damaged(path)
            return Sealed(path, content)
    return _moved(request, [f"{folder}/{name}" for name in written])


def _moved(request: Request, paths: Sequence[str]) -> Sealed | None:
    """Return the first seal of files that were elsewhere; None without one.

    Args:
        request: the search-space files.
        paths: the seals of a store, none of which is of files at these places.

    Raises:
        DamagedStore: no intact seal fits, and a seal that may be of these files was edited.
    """
    if not paths:
        return None
    seals = [Sealed(path, _written(request.store, path), is_moved=True) for path in paths]
    intact = [there for there in seals if _is_intact(there.content)]
    intact.sort(key=lambda there: str(there.content["sealed_at"]))
    now = _content(request)
    for there in intact:
        if (there.content["claims"], there.content["space"]) == (there.claims_now(request), now["space"]):
            return there
    for there in intact:
        is_named = there.content.get("studies") == list(request.selection.titles)
        if is_named and not _are_in_place(request, there.content["files"]):
            return there
    for there in seals:
        if there not in intact and _may_be_of(request, now, there):
            raise _damaged(there.path)
    return None


def _may_be_of(request: Request, now: dict[str, Any], damaged: Sealed) -> bool:
    """Return whether a damaged seal may be of some files that were moved, by its name or by what is left of it.

    The name of a seal ends with a digest of the places. If the places in it still fit, and a file is there, the seal
    is of that file.

    Args:
        request: the search-space files.
        now: what a seal of them would contain.
        damaged: the damaged seal.
    """
    content = damaged.content
    files = content.get("files", [])
    if damaged.path.endswith(_ending(files)) and _are_in_place(request, files):
        return False
    studies = damaged.path.rpartition("/")[2][: -len(_ending([]))]
    return studies == _name(request) or any(content.get(name) == now[name] for name in ("claims", "space"))


def _are_in_place(request: Request, files: Sequence[str]) -> bool:
    """Return whether one of the files that were sealed is still in its place."""
    start = _start(request)
    return any((start / file).exists() for file in files)


def _written(store: RunStore, path: str) -> dict[str, Any]:
    """Return the content of the file of a seal; empty if it is no JSON."""
    try:
        content = json.loads(store.files.read(path).to_pybytes())
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _is_intact(content: dict[str, Any]) -> bool:
    """Return whether the content of a seal fits its digest."""
    sealed = {name: value for name, value in content.items() if name != "sha256"}
    return content.get("sha256") == sha256(sealed)


def _damaged(path: str) -> DamagedStore:
    return DamagedStore(f"{path}: was edited after it was sealed; restore the original file")


def _path(request: Request) -> str:
    """Return the path of a new seal, named after the studies and the places of their files."""
    return f"{_folder(request)}/{_name(request)}{_ending(_places(request))}"


def _name(request: Request) -> str:
    """Return the names of the studies, as in the name of a seal."""
    return "+".join(map(file_name, request.selection.titles))


def _folder(request: Request) -> str:
    return f"{request.store.files.root}/claims"


def _ending(places: Sequence[str]) -> str:
    """Return how the names of the seals of files at some places end."""
    return f"-{sha256(places)[:8]}.json"


def _places(request: Request) -> list[str]:
    """Return the paths of the search-space files, relative to the parent of the store's folder."""
    start = _start(request)
    return [Path(os.path.relpath(file.resolve(), start)).as_posix() for file in request.selection.files]


def _start(request: Request) -> Path:
    """Return the parent of the store's folder; the current folder for an object store."""
    folder = request.store.files.folder
    return Path.cwd() if folder is None else folder.parent


def _content(request: Request) -> dict[str, Any]:
    configs = request.selection.configs
    identities = sorted({config.identity for config in configs})
    data = sorted({found for config in configs if (found := request.data_hash(config)) is not None})
    claims = claims_as_json(request.selection.claims)
    return {
        "claims": claims,
        "space": sha256(identities),
        "runs": len(identities),
        "data": data,
        "settings": {space.name: _settings(space) for space in request.selection.spaces if space.search is None},
        "searches": {space.name: _search(space) for space in request.selection.searches},
        "reported": {tuned.name: list(tuned.undivided.seeds) for tuned in request.selection.tuned},
        "sizes": {tuned.name: tuned.size for tuned in request.selection.tuned},
        "code": _code(request),
    }


def _code(request: Request) -> dict[str, Any]:
    """Return the digests of the code of the plug-ins that the runs use, by name; see `plugins_of`."""
    code: dict[str, Any] = {}
    for used in dict.fromkeys(map(plugins_of, request.selection.configs)):
        code |= json.loads(used or "{}")
    return code


def _settings(space: SearchSpace) -> dict[str, Any]:
    """Return base config, axes and seeds of a grid as JSON, by the names that a change of them is reported with."""
    described: dict[str, Any] = space.base.model_dump(mode="json", exclude={"seed"})
    for axis, values in space.axes.items():
        described[f"axis {axis}"] = values
    described["seeds"] = list(space.seeds)
    plain: dict[str, Any] = json.loads(json.dumps(described, default=str))
    return plain


def _search(space: SearchSpace) -> dict[str, Any]:
    """Return what the choice of a search depends on, as JSON: its definition, trials and sampler."""
    search = search_of(space)
    options = json.loads(json.dumps(search.sampler_options, default=_kind_in_words))
    sampler = {"sampler": search.sampler, "sampler_seed": search.sampler_seed, "sampler_options": options}
    return {**definition.definition(space, {}), "n_trials": search.n_trials, **sampler}


def _kind_in_words(value: object) -> str:
    """Return the type of an option that is no JSON, such as a function, whose text differs in each process."""
    return type(value).__name__


def _other_runs(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Describe that a search space requests other runs, with the settings that a seal holds and that differ."""
    words = "the search space requests other runs"
    has_searches = was.get("searches") or now["searches"]
    if was["runs"] != now["runs"] and not has_searches:
        words += f" ({now['runs']:,} instead of {was['runs']:,})"
    before, after = was.get("settings", {}), now["settings"]
    changes = []
    for name in sorted(before.keys() & after.keys()):
        for entry, then, current in definition.differences(before[name], after[name]):
            of_space = f"{name}: " if len(after) > 1 else ""
            changes.append(f"{of_space}{entry} {current} instead of {then}")
    changes += _changes_of_sizes(was.get("sizes", {}), now["sizes"])
    return f"{words}: {listed(changes)}" if changes else words


def _changes_of_sizes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    changes = []
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            changes.append(f"{name} has {after[name]} (sealed: {before[name]})")
    return changes


def _changes_of_code(request: Request, before: Mapping[str, Any]) -> list[str]:
    """Return the plug-ins whose code is not as it was; data are compared by their content."""
    then = json.dumps(before)
    changed: dict[str, None] = {}
    for config in request.selection.configs:
        changed.update(dict.fromkeys(changed_since(config, then)))
    return [f"the code of {plugin} was edited" for plugin in changed]


def _changes_of_searches(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    changes = [f"search {name} was added" for name in sorted(after.keys() - before.keys())]
    changes += [f"search {name} was removed" for name in sorted(before.keys() - after.keys())]
    for name in sorted(before.keys() & after.keys()):
        for entry, was, now in definition.differences(before[name], after[name]):
            changes.append(f"search {name} has {entry} {now} instead of {was}")
    return changes


def _changes_of_seeds(before: Mapping[str, Sequence[int]], after: Mapping[str, Sequence[int]]) -> list[str]:
    differences = []
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            seeds = f"seeds {listed(after[name])} instead of {listed(before[name])}"
            differences.append(f"tuned space {name} is reported on {seeds}")
    return differences
