"""Code that changed since it computed finished runs of a request."""

from __future__ import annotations

from collections.abc import Sequence

from clops_sweep.data.origins import ORIGINS
from clops_sweep.experiment.provenance import PROVENANCE, changed_code, changed_encoders, plugins_of
from clops_sweep.planning.plan import Plan
from clops_sweep.planning.request import Request
from clops_sweep.search.standing import Standing


def changes(request: Request, plan: Plan, searches: Sequence[Standing]) -> list[str]:
    """Return a sentence for each plug-in and encoder that changed since finished runs of a request used it.

    Args:
        request: what was asked for.
        plan: its plan.
        searches: the state of its searches.
    """
    return [*_changed_plugins(request, plan, searches), *_changed_encoders(request)]


def _changed_plugins(request: Request, plan: Plan, searches: Sequence[Standing]) -> list[str]:
    if not ORIGINS or not any(plugins_of(config) for config in request.selection.configs):
        return []
    finished = [str(run.run_id) for run in plan.of("finished")]
    records = [search.record for search in searches if search.record is not None]
    finished += [run_id for record in records for trial in record.trials for run_id in trial.run_ids]
    return changed_code(request.store.rows("runs", PROVENANCE, finished)) if finished else []


def _changed_encoders(request: Request) -> list[str]:
    encoders = request.data.encoders
    names = {config.encoder for config in request.selection.configs}
    now = {name: encoders.identity(name) for name in names if isinstance(name, str)} if encoders is not None else {}
    if not now:
        return []
    return changed_encoders(request.store.rows("runs", ["encoder", "encoder_hash"]), now)
