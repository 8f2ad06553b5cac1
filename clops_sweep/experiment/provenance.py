"""The custom code that a run used, as a column of `runs`, and whether it has changed since."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from clops_sweep.data.origins import ORIGINS, Origin
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import REGISTRIES

_NAMING = (*REGISTRIES, "dataset")
"""The config fields that may name a plug-in."""

PROVENANCE = (*_NAMING, "plugins")
"""Columns that `changed_code` needs."""


def plugins_of(config: RunConfig) -> str | None:
    """Return the custom plug-ins of a run as JSON: name to the fields of its `Origin` that are stored.

    None if all its plug-ins are built in. Plug-ins that its strategy does not use are left out.
    """
    used = json.loads(config.identity)
    custom: dict[str, list[str | None]] = {}
    for field in _NAMING:
        name = config.get(field)
        origin = ORIGINS.get((field, name))
        if origin is not None and used.get(field) == name:
            key = f"{field} {name}" if name in custom else name
            custom[key] = [origin.file, origin.sha256, origin.code, origin.read]
    return json.dumps(custom) if custom else None


def plugin_origins(plugins: object) -> tuple[Origin, ...]:
    """Return the origins of the plug-ins of a run, from its column `plugins`; empty for none or an early version."""
    return tuple(_stored(plugins).values())


def origin_of_data(row: Mapping[str, Any]) -> Origin | None:
    """Return the origin of the data set of a run; None if it is built in, or the run is of an early version."""
    stored = _stored(row["plugins"])
    return stored.get(f"dataset {row['dataset']}") or stored.get(row["dataset"])


def other_plugins(row: Mapping[str, Any]) -> list[str]:
    """Return the names of the plug-ins of a run, without its data set."""
    return [name for name in _stored(row["plugins"]) if name not in (row["dataset"], f"dataset {row['dataset']}")]


def described(plugins: object) -> list[str]:
    """Describe each plug-in of a run in one line, from its column `plugins`."""
    lines = []
    for name, origin in _stored(plugins).items():
        sha256 = origin.sha256 or "not known"
        lines.append(f"{name}: {origin.file or 'a notebook'}, SHA-256 {sha256[:12]}")
    return lines


def changed_code(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each registered plug-in whose code differs from that of stored runs.

    Args:
        rows: rows of `runs`, with the columns `PROVENANCE`. Runs of earlier versions and unregistered plug-ins are
            skipped.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    for row in rows:
        counts.update(changed_plugins(row))
    sentences = []
    for (field, name, file), runs in sorted(counts.items()):
        are, count = ("is", "counts") if runs == 1 else ("are", "count")
        sentences.append(
            f"{field} {name!r}: {_stored_runs(runs)} {are} of an earlier version of its code ({file}) and {count} as "
            "finished; to run the present version, register it under another name"
        )
    return sentences


def changed_network(row: Mapping[str, Any]) -> str | None:
    """Return a sentence if the code of a model's network differs from that of the run that trained it; else None.

    Args:
        row: the run's row of `runs`, with the columns `run_id` and `PROVENANCE`.
    """
    for field, name, file in changed_plugins(row):
        if field == "network":
            return (
                f"{field} {name!r}: its code has changed since it was trained in run {row['run_id']} ({file}); the "
                "model may predict otherwise than that run did"
            )
    return None


def changed_plugins(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return field, name and file of the plug-ins of a run whose code has changed since.

    Args:
        row: the run's row of `runs`, with the columns `PROVENANCE`.
    """
    stored = _stored(row["plugins"])
    if not stored:
        return []
    changed = []
    for field in _NAMING:
        if field in ("encoder", "dataset"):  # a run's id depends on the code of an encoder and on the content of frames
            continue
        name = row[field]
        before = stored.get(f"{field} {name}") or stored.get(name)
        now = ORIGINS.get((field, name))
        if before is not None and now is not None and now.differs(before):
            changed.append((field, str(name), before.file or "a notebook"))
    return changed


def changed_since(config: RunConfig, plugins: object) -> list[str]:
    """Return the plug-ins of a config, such as "network 'mine'", whose code has changed since a moment.

    Args:
        config: the config.
        plugins: what `plugins_of` returned at that moment.
    """
    row = {field: config.get(field) for field in _NAMING}
    return [f"{field} {name!r}" for field, name, _ in changed_plugins({**row, "plugins": plugins})]


def changed_encoders(rows: Iterable[Mapping[str, Any]], now: Mapping[str, str]) -> list[str]:
    """Return a sentence for each encoder that differs from the one of stored runs.

    Args:
        rows: rows of `runs`, with the columns `encoder` and `encoder_hash`.
        now: identities of encoders by name.
    """
    counts: Counter[str] = Counter()
    for row in rows:
        name = row["encoder"]
        before = row["encoder_hash"]
        if name in now and isinstance(before, str) and before != now[name]:
            counts[name] += 1
    sentences = []
    for name, runs in sorted(counts.items()):
        sentences.append(
            f"encoder {name!r}: its code, weights or declaration changed after {_stored_runs(runs)}; its runs are "
            "computed anew, under other ids"
        )
    return sentences


def _stored_runs(count: int) -> str:
    return f"{count} stored run{'s' if count > 1 else ''}"


def _stored(plugins: object) -> dict[str, Origin]:
    """Return the origins in a column by name; empty for null, which pandas may read as nan."""
    if not isinstance(plugins, str):
        return {}
    return {name: Origin(*origin) for name, origin in json.loads(plugins).items()}
