"""Contract suite of acquisition functions."""

from __future__ import annotations

import torch

from clops_sweep.data.catalog import ScenarioName
from clops_sweep.experiment.plugins.registry import ACQUISITION_FUNCTIONS, PAPER_NETWORK
from clops_sweep.experiment.tasks import scenario_of
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Instances
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.learning.networks.module_probe import same_bits
from clops_sweep.learning.replay.acquisition import AcquisitionContext, AcquisitionFunction
from clops_sweep.learning.threads import one_thread
from clops_sweep.testing.defaults import with_defaults
from clops_sweep.testing.frames import SCENARIO_KINDS, tiny_config, tiny_frames
from clops_sweep.testing.strategy_contract import check_named_strategy
from clops_sweep.testing.watch import Looks, difference, global_randomness, require, saved_and_loaded

_SEED = 3
_COUNTERS = (1, 0, 0)


def check_acquisition_function(function: AcquisitionFunction, *, network: str = PAPER_NETWORK) -> None:
    """Check an acquisition function against its contract.

    With each kind of output, on a network that has been trained for an epoch:

    - Scores are finite, have the shape [m], and are equal in a second call.
    - The function does not change network, running statistics, optimiser or rows, not even by a bit.
    - It draws random numbers only from named streams and reads only the given frames.

    Then complete runs of CLOPS with the function must pass `check_strategy`'s suite.

    Args:
        function: from (AcquisitionContext, rows int64 [m]) to scores [m].
        network: name of the network that is trained.

    Raises:
        ContractViolation: the function breaks the contract; the message says how.
    """
    with one_thread():
        for scenario in SCENARIO_KINDS:
            _check_scores(with_defaults(ACQUISITION_FUNCTIONS, function), scenario, network)
    with ACQUISITION_FUNCTIONS.temporarily("function_under_test", function):
        for scenario in SCENARIO_KINDS:
            config = tiny_config(scenario, acquisition="function_under_test", network=network)
            check_named_strategy(config, tiny_frames(scenario, tasks=2))


def _check_scores(function: AcquisitionFunction, scenario: ScenarioName, network: str) -> None:
    context, rows = _network_in_training(scenario, _SEED, network)
    looks = Looks(context.learner)
    before, rows_before = saved_and_loaded(context.learner.state()), rows.clone()
    with global_randomness(1, f"the acquisition function in {scenario}"):
        scores = function(context, rows)
    require(isinstance(scores, torch.Tensor), f"{scenario}: scores are a tensor, not a {type(scores).__name__}")
    require(scores.shape == rows.shape, f"{scenario}: scores of shape {list(scores.shape)} for rows {list(rows.shape)}")
    require(scores.is_floating_point(), f"{scenario}: scores are {scores.dtype}, not floating point")
    require(not scores.requires_grad, f"{scenario}: scores require gradients; compute them under torch.no_grad()")
    require(scores.isfinite().all(), f"{scenario}: a score is not finite")
    require(same_bits(rows, rows_before), f"{scenario}: scoring changed the rows")
    changed = difference(before, context.learner.state(), "learner")
    require(changed is None, f"{scenario}: scoring changed {changed}")
    foreign = looks.take() - set(rows.flatten().tolist())
    require(not foreign, f"{scenario}: scoring read frames other than the given ones: rows {sorted(foreign)}")
    with global_randomness(2, f"the acquisition function in {scenario}"):
        require(same_bits(function(context, rows), scores), f"{scenario}: scores differ in a second call")


def _network_in_training(
    scenario: ScenarioName, seed: int, network: str = PAPER_NETWORK
) -> tuple[AcquisitionContext, torch.Tensor]:
    """Return a network after one epoch on the first task, and random rows of it to score: int64 [m]."""
    config = tiny_config(scenario, seed=seed, network=network)
    frames = tiny_frames(scenario)
    tasks = scenario_of(config, frames)
    bank = FrameBank(frames, torch.device("cpu"))
    learner = make_learner(seed, tasks.kind, tasks.outputs, config.learning_rate, bank, network)
    first = tasks.tasks[0].train
    instances = Instances(torch.from_numpy(first.rows), torch.from_numpy(first.targets))
    order = streams.permutation(seed, len(first.rows), "contract order")
    learner.train_epoch(instances, None, order, config.batch_size, streams.keys(seed, "contract dropout"))
    chosen = streams.choice(seed, len(first.rows), len(first.rows) // 2, "contract rows")
    return AcquisitionContext(learner, config, _COUNTERS), instances.rows[chosen]
