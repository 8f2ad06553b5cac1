"""The disk space that the models of pending runs will take."""

from __future__ import annotations

import math

from clops_sweep.data.scenarios import Scenario
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import NETWORKS, STRATEGIES
from clops_sweep.experiment.tasks import scenario_of
from clops_sweep.planning.curriculum import BY_DIFFICULTY
from clops_sweep.planning.plan import Plan
from clops_sweep.planning.request import Request


def disk_for_models(asked: Request, plan: Plan) -> tuple[int, int]:
    """Return the number of models that pending runs will keep, and their bytes; (0, 0) without `--keep models`.

    Runs on data that are not prepared on this machine, and the trials of searches, are not counted.
    """
    kept = asked.store.keep_models
    if kept is None:
        return 0, 0
    sizes: dict[tuple[object, ...], tuple[int, int]] = {}
    count = size = 0
    for run in plan.of("pending", "waiting"):
        config = run.config
        if asked.data_hash(config) is None:
            continue
        of_network = config.network, config.lora_rank, *config.network_options.items()
        key = config.data_key, *of_network, config.strategy, *config.tasks_key
        if key not in sizes:
            sizes[key] = _of_run(asked, config)
        tasks, each = sizes[key]
        models = tasks if kept == "all" else 1
        count, size = count + models, size + models * each
    return count, size


def models_in_words(asked: Request, plan: Plan) -> str | None:
    """Return a phrase such as "models: 320 files, 45 MB"; None without models to keep."""
    count, size = disk_for_models(asked, plan)
    if not count:
        return None
    unit = min(3, max(1, int(math.log10(size) // 3)))
    return f"models: {count:,} files, {size / 1000**unit:.3g} {'kMG'[unit - 1]}B on disk"


def _of_run(asked: Request, config: RunConfig) -> tuple[int, int]:
    """Return the number of models of a run if all are kept, and the bytes of one."""
    from clops_sweep.learning.networks.multitask import joint_scenario
    from clops_sweep.learning.networks.on_features import network_options
    from clops_sweep.learning.networks.run_module import made, weights_of

    frames = asked.data.frames(config.data_key)
    in_order = config.replace(task_order="sequential") if config.task_order in BY_DIFFICULTY else config
    scenario: Scenario = scenario_of(in_order, frames)
    joint = STRATEGIES[config.strategy].joint
    outputs = (joint_scenario(scenario) if joint else scenario).outputs
    shape = (frames.channels, frames.samples)
    module = made(config.network, NETWORKS[config.network], 0, shape, outputs, network_options(config, frames))
    weights = sum(value.numel() * value.element_size() for value in weights_of(config.network, module).values())
    return 1 if joint else len(scenario.tasks), weights
