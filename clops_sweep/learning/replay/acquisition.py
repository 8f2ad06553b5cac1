"""Acquisition functions: scores of the stored instances to replay, from the current networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from clops_sweep.experiment.config import RunConfig
from clops_sweep.learning import streams
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.replay.entropy import mutual_information, predictive_entropy
from clops_sweep.learning.replay.gaussian import divergence_of_probabilities

PERTURBED_CHUNK = 512  # number of frames whose noise is in memory at a time


@dataclass(frozen=True)
class AcquisitionContext:
    """Arguments of an acquisition function.

    Attributes:
        learner: the network; scoring must not change it.
        config: the config of the run.
        counters: progress of the run (task, epoch, portion): the counters of any random stream.
    """

    learner: Learner
    config: RunConfig
    counters: tuple[int, int, int]

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self.config.seed


AcquisitionFunction = Callable[..., torch.Tensor]
"""Maps (context, rows int64 [m]) and options by name to scores [m]. The highest scores are replayed."""


def bald_mcd(context: AcquisitionContext, rows: torch.Tensor, *, mc_samples: int) -> torch.Tensor:
    """Return BALD by Monte-Carlo dropout: H(mean_t p_t) - mean_t H(p_t) over T dropout passes, in nats.

    See Houlsby et al., 2011; Gal and Ghahramani, 2016; CLOPS, eq. for alpha.
    """
    samples = _dropout_samples(context, rows, mc_samples)
    return mutual_information(context.learner.kind, samples)


def random(context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    """Return uniform scores from the stream "random acquisition": every subset is equally likely."""
    generator = streams.generator(context.seed, "random acquisition", *context.counters)
    drawn = generator.random(len(rows))
    return torch.from_numpy(drawn).to(rows.device)


def entropy(context: AcquisitionContext, rows: torch.Tensor, *, mc_samples: int) -> torch.Tensor:
    """Return H(mean_t p_t) over T dropout passes, in nats (Shannon, 1948; as in Gal, Islam and Ghahramani, 2017)."""
    samples = _dropout_samples(context, rows, mc_samples)
    return predictive_entropy(context.learner.kind, samples.mean(-2))


def variation_ratio(context: AcquisitionContext, rows: torch.Tensor, *, mc_samples: int) -> torch.Tensor:
    """Return 1 - max_c (mean_t p_t)_c over T dropout passes (Freeman, 1965; as in Gal, Islam and Ghahramani, 2017).

    A sigmoid has the two outcomes p and 1 - p; several sigmoids are averaged.
    """
    mean = _dropout_samples(context, rows, mc_samples).mean(-2)
    if context.learner.kind == "softmax":
        return 1 - mean.max(-1).values
    return torch.minimum(mean, 1 - mean).mean(-1)


def bald_mcp(
    context: AcquisitionContext, rows: torch.Tensor, *, mc_samples: int, perturbation_std: float
) -> torch.Tensor:
    """Return BALD over T inputs z_t = x + N(0, sigma^2), dropout off (Kiyasseh et al., 2020; CLOPS, appendix)."""
    generator = streams.generator(context.seed, "acquisition perturbation", *context.counters)
    scores = []
    for chunk in rows.split(PERTURBED_CHUNK):
        predictions = []
        for _ in range(mc_samples):
            noise = _noise(context, generator, chunk, perturbation_std)
            predictions.append(context.learner.probabilities(chunk, noise=noise))
        samples = torch.stack(predictions, dim=-2)
        scores.append(mutual_information(context.learner.kind, samples))
    return torch.cat(scores)


def balc_kld(
    context: AcquisitionContext, rows: torch.Tensor, *, mc_samples: int, perturbation_std: float
) -> torch.Tensor:
    """Return KL( N(mu(x), S(x)) || N(mu(z), S(z)) ) for one perturbed z (Kiyasseh et al., 2020; CLOPS, appendix).

    mu and S are mean and covariance of the predictions over T dropout passes, with the same masks for x and z. The
    probabilities of a softmax sum to one, so its last coordinate is left out, which does not change the divergence; a
    sigmoid has one coordinate, and several sigmoids are summed. 1e-6 I is added to S.
    """
    generator = streams.generator(context.seed, "acquisition perturbation", *context.counters)
    scores = []
    for number, chunk in enumerate(rows.split(PERTURBED_CHUNK)):
        keys = streams.keys(context.seed, "acquisition dropout", *context.counters, number).to(rows.device)
        noise = _noise(context, generator, chunk, perturbation_std)
        clean = context.learner.dropout_probabilities(chunk, mc_samples, keys)
        perturbed = context.learner.dropout_probabilities(chunk, mc_samples, keys, noise=noise)
        scores.append(divergence_of_probabilities(context.learner.kind, clean, perturbed))
    return torch.cat(scores)


def _dropout_samples(context: AcquisitionContext, rows: torch.Tensor, mc_samples: int) -> torch.Tensor:
    """Return T dropout samples from the run's acquisition stream: float64 [m, T, C]."""
    keys = streams.keys(context.seed, "acquisition dropout", *context.counters).to(rows.device)
    return context.learner.dropout_probabilities(rows, mc_samples, keys).to(torch.float64)


def _noise(context: AcquisitionContext, generator: np.random.Generator, rows: torch.Tensor, std: float) -> torch.Tensor:
    """Return the next N(0, sigma^2) draws of the stream: float32 [m, *shape of an instance]."""
    drawn = generator.standard_normal((len(rows), *context.learner.bank.shape), dtype=np.float32)
    return torch.from_numpy(drawn).to(rows.device).mul_(std)
