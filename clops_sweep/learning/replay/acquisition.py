"""Acquisition: which stored instances are worth replaying, given the network as it is now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from clops_sweep.config import RunConfig
from clops_sweep.learning import streams
from clops_sweep.learning.entropy import mutual_information
from clops_sweep.learning.learner import Learner


@dataclass(frozen=True)
class AcquisitionContext:
    """What an acquisition function may look at.

    Attributes:
        learner: the networks; scoring must leave them as they are.
        config: the runs' common settings.
        seeds: one a run.
        counters: where in the runs this is (task, epoch, portion): the counters of any random stream.
    """

    learner: Learner
    config: RunConfig
    seeds: Sequence[int]
    counters: tuple[int, int, int]


AcquisitionFunction = Callable[[AcquisitionContext, torch.Tensor], torch.Tensor]
"""Scores stored instances: (context, rows int64 [S, m]) to scores [S, m]; the highest are replayed."""


def bald_mcd(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    """BALD by Monte-Carlo dropout: H(mean_t p_t) - mean_t H(p_t) over T dropout passes, in nats.

    (Houlsby et al., 2011; Gal and Ghahramani, 2016; CLOPS, eq. for alpha.)
    """
    keys = streams.keys(context.seeds, "acquisition dropout", *context.counters).to(rows.device)
    samples = context.learner.dropout_probabilities(rows, context.config.mc_samples, keys)
    return mutual_information(context.learner.kind, samples)


def random(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    """Uniform scores from the stream "random acquisition": every subset is equally likely."""
    drawn = [
        streams.generator(seed, "random acquisition", *context.counters).random(rows.shape[1]) for seed in context.seeds
    ]
    return torch.from_numpy(np.stack(drawn)).to(rows.device)


ACQUISITION_FUNCTIONS: dict[str, AcquisitionFunction] = {"bald_mcd": bald_mcd, "random": random}
