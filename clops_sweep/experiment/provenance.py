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
    """Return the custom plug-ins of a run as JSON: name to [file, SHA-256 of the file, SHA-256 of the code].

    None if all its plug-ins are built in. Plug-ins that its strategy does not use are left out.
    """
    used = json.loads(config.identity)
    found: dict[str, list[str | None]] = {}
    for field in _NAMING:
        name = config.get(field)
        origin = ORIGINS.get((field, name))
        if origin is not None and used.get(field) == name:
            found[name if name not in found else f"{field} {name}"] = [origin.file, origin.sha256, origin.code]
    return json.dumps(found) if found else None


def plugin_origins(plugins: object) -> tuple[Origin, ...]:
    """Return the origins of the plug-ins of a run, from its column `plugins`; empty for none or an early version."""
    return tuple(_stored(plugins).values())


def described(plugins: object) -> list[str]:
    """Describe each plug-in of a run in one line, from its column `plugins`."""
    return [
        f"{name}: {origin.file or 'a notebook'}, SHA-256 {(origin.sha256 or 'not known')[:12]}"
        for name, origin in _stored(plugins).items()
    ]


def changed_code(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each registered plug-in whose code differs from that of stored runs.

    Args:
        rows: rows of `runs`, with the columns `PROVENANCE`. Runs of earlier versions and unregistered plug-ins are
            skipped.
    """
    counts = Counter(
        (field, str(row[field]), before.file or "a notebook")
        for row in rows
        if (stored := _stored(row["plugins"]))
        for field in _NAMING
        if field != "encoder"  # their code is part of the run's identity
        if (before := stored.get(f"{field} {row[field]}") or stored.get(row[field])) is not None
        and (now := ORIGINS.get((field, row[field]))) is not None
        and now.differs(before)
    )
    return [
        f"{field} {name!r}: its code is no longer what computed {runs} stored run{'s' if runs > 1 else ''} ({file}); "
        "under another name it is computed anew"
        for (field, name, file), runs in sorted(counts.items())
    ]


def changed_encoders(rows: Iterable[Mapping[str, Any]], now: Mapping[str, str]) -> list[str]:
    """Return a sentence for each encoder that differs from the one of stored runs.

    Args:
        rows: rows of `runs`, with the columns `encoder` and `encoder_hash`.
        now: identities of encoders by name.
    """
    changed = ((row["encoder"], row["encoder_hash"]) for row in rows if row["encoder"] in now)
    counts = Counter(name for name, before in changed if isinstance(before, str) and before != now[name])
    return [
        f"encoder {name!r}: its code, weights or declaration changed after {runs} stored run{'s' if runs > 1 else ''}; "
        "its runs are computed anew, under other ids"
        for name, runs in sorted(counts.items())
    ]


def _stored(plugins: object) -> dict[str, Origin]:
    """Return the origins in a column by name; empty for null, which pandas may read as nan."""
    if not isinstance(plugins, str):
        return {}
    return {name: Origin(*origin) for name, origin in json.loads(plugins).items()}
