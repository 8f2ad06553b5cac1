"""Requests with encoders that are runs: what must be trained first, and the request once it is trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from clops_sweep.errors import UsageError, shown
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.claims import sha256
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.request import Request

_DIGEST = 8
"""Number of hexadecimal digits of a digest in the name of a search space."""


def request_of_encoders(request: Request, configs: Iterable[RunConfig]) -> Request:
    """Return the request of configs that are encoders, which keeps their models.

    The name of each space has a digest of the config, since the encoders of several files may be in one store.
    """
    spaces = []
    for config in configs:
        name = f"pretraining_{sha256(config.identity)[:_DIGEST]}"
        spaces.append(SearchSpace(name, config, seeds=[config.seed]))
    return Request(Selection(tuple(spaces)), request.data, request.store.keeping("models"))


def with_trained_encoders(request: Request) -> Request:
    """Return the request with `run:RUN_ID` in place of each encoder that is a finished run.

    Raises:
        UsageError: a config is an encoder elsewhere than in base or axes.
    """
    first = request.selection.encoders
    if not first:
        return request
    if left := _with_encoders(request, dict.fromkeys(first, f"run:{0:024}")).selection.encoders:
        raise UsageError(f"encoder = {shown(left[0])}: expected it in base or axes of the search space")
    stored: dict[RunConfig, str] = {}
    for config in _innermost_first(first):
        run = _with_encoders(request_of_encoders(request, [config]), stored).plan().asked[0]
        if run.state == "finished":
            stored[config] = f"run:{run.run_id}"
    return _with_encoders(request, stored)


def _innermost_first(encoders: Sequence[RunConfig]) -> list[RunConfig]:
    """Return configs that are encoders, and those that are their encoders in turn, each after its own."""
    outermost_first: list[RunConfig] = []
    level = list(encoders)
    while level:
        outermost_first.extend(level)
        level = [config.encoder for config in level if isinstance(config.encoder, RunConfig)]
    return list(dict.fromkeys(reversed(outermost_first)))


def _with_encoders(request: Request, stored: Mapping[RunConfig, str]) -> Request:
    given = tuple(space.with_encoders(stored) for space in request.selection.given)
    return replace(request, selection=replace(request.selection, given=given, reported=()))
