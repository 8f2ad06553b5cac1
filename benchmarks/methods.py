"""Training step of every method, compared with fine-tuning in the same process."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks import shapes
from benchmarks.timing import table
from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.config import RunConfig
from clops_sweep.learning import streams
from clops_sweep.learning.run import ContinualRun

TASK, BATCH = 2, 16
METHODS: dict[str, dict[str, Any]] = {
    "replay": {},
    "er": {},
    "er_ace": {},
    "derpp": {},
    "agem": {"agem_batch_size": BATCH},
    "gdumb": {},
    "mir": {},
    "gem": {},
    "ewc": {},
    "si": {},
    "mas": {},
    "lwf": {},
}
"""Settings of each method other than the defaults."""


EXAMPLES = {"my_derpp": "derpp", "my_ewc": "ewc", "my_lwf": "lwf", "my_replay": "er"}
"""The methods of `EXAMPLE_PAGES`, written as a loss, with the corresponding built-in method."""
EXAMPLE_PAGES = ("own_method.md", "method_examples.md")


class TrainedTwice:
    """A run in the middle of its third task, whose epochs can be trained repeatedly.

    Args:
        frames: frames of the paper's Class-IL shape.
        strategy: the method.
        settings: other config fields.
    """

    def __init__(self, frames: FrameSet, strategy: str, **settings: Any) -> None:
        scenario = "class_il_union" if strategy == "er_ace" else "class_il"
        config = RunConfig(strategy=strategy, scenario=scenario, batch_size=BATCH, epochs_per_task=1, **settings)
        self._run = ContinualRun(config.replace(learning_rate=1e-4), frames)
        for _ in range(TASK):
            self._run.advance()
        self._strategy = self._run.strategy
        self._strategy.come_to(TASK, end=False)
        self._strategy.begin_task(TASK)
        self._instances = len(self._run.tasks[TASK].rows)
        trained = len(self._strategy.memory) if strategy == "gdumb" else self._instances
        self._steps, self._epochs = math.ceil(trained / BATCH), 0

    def seconds(self) -> float:
        """Return the processor time per step of an epoch."""
        epoch, seed = self._epochs, self._run.config.seed
        self._epochs += 1
        start = time.process_time()
        replay = self._strategy.replay(TASK, epoch)
        size = self._instances + (0 if replay is None else len(replay.instances.rows))
        order = streams.permutation(seed, size, "batch order", TASK, epoch)
        self._strategy.train_epoch(TASK, epoch, replay, order, streams.keys(seed, "training dropout", TASK, epoch))
        return (time.process_time() - start) / self._steps


def example_methods() -> list[str]:
    """Return the Python of the pages that declares methods."""
    pages = Path(__file__).parents[1] / "docs"
    blocks = []
    for name in EXAMPLE_PAGES:
        blocks += re.findall(r"^```python\n(.*?)^```$", (pages / name).read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if "@strategy" in block]


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    frames = shapes.class_il(shapes.scaled(shapes.CLASS_IL, 0.25)) if quick else shapes.class_il()
    rows, rounds = [], 3 if quick else 25
    finetune = TrainedTwice(frames, "finetune")
    for name, settings in METHODS.items():
        method = TrainedTwice(frames, name, **settings)
        pairs = [(finetune.seconds(), method.seconds()) for _ in range(rounds)]
        beside, own = (min(times) for times in zip(*pairs, strict=True))
        said = "".join(f", `{option} = {value}`" for option, value in settings.items())
        rows.append([f"`{name}`{said}", f"{1e6 * beside:.0f}", f"{1e6 * own:.0f}", f"{own / beside:.2f}"])
    examples = []
    for block in example_methods():
        exec(block, {})
    for name, like in EXAMPLES.items():
        methods = TrainedTwice(frames, like), TrainedTwice(frames, name)
        pairs = [tuple(method.seconds() for method in methods) for _ in range(rounds)]
        built_in, own = (min(times) for times in zip(*pairs, strict=True))
        examples.append([f"`{name}`", f"`{like}`", f"{1e6 * built_in:.0f}", f"{1e6 * own:.0f}"])
    header = ["method", "step of fine-tuning, us", "step, us", "ratio"]
    return (
        "## A training step of every method\n\nThe third of six tasks of the paper's Class-IL shape, batch "
        f"{BATCH}, one core: an epoch with all that belongs to it, by its steps; the best of {rounds}, fine-tuning and "
        "the method taking "
        "turns. `er` and `er_ace` (on the union of the classes) differentiate 16 stored instances beside every 16, "
        "`derpp` 32.\n\n" + table(header, rows) + "\n\nThe examples of the documentation, which are written as a loss, "
        "beside the built-in methods that they are like:\n\n"
        + table(["method", "built in", "its step, us", "step, us"], examples)
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(run(quick=False))
