"""A study on UCI-HAR of why layer norm helps replay in only some benchmarks: see docs/training.md.

The task's batch and the replayed batch share a forward pass, or have one each, as in many benchmarks. With two passes,
batch norm uses separate statistics. The memory is balanced by class.
"""

import torch
from torch import nn

from clops_sweep import BoolOption, Memory, SearchSpace, Strategy, network, strategy
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space
from clops_sweep.search_spaces.heads_uci_har import conv_blocks

(HEADS,) = load_spaces(shipped_space("heads_uci_har"))  # declares the data set and its network


@strategy("er_in_passes", options={"two_passes": BoolOption(True)})
class ReplayInPasses(Strategy):
    """Replay from the second task on."""

    def setup(self):
        """96 instances are 5 % of the training instances."""
        self.memory = Memory(96, "class_balanced")

    def loss(self, batch):
        """Cross-entropy of the batch plus that of as many replayed instances."""
        if not self.memory:
            return self.criterion(self.model(batch.x), batch.y)
        old = self.memory.sample(len(batch), replacement=True)
        if self.options.two_passes:
            return self.criterion(self.model(batch.x), batch.y) + self.criterion(self.model(old.x), old.y)
        logits = self.model(torch.cat([batch.x, old.x])).split(len(batch))
        return self.criterion(logits[0], batch.y) + self.criterion(logits[1], old.y)

    def end_task(self, task):
        """Store instances of the task."""
        self.memory.offer(self.instances(task))


@network("conv_blocks_normalised")
def conv_blocks_normalised(channels, samples, outputs):
    """The same network behind a normalisation of each instance and channel."""
    return nn.Sequential(nn.InstanceNorm1d(channels), *conv_blocks(channels, samples, outputs, conv_width=16))


BASE = HEADS.base.replace(strategy="er_in_passes")
AXES = {
    "network": ["conv_blocks", "conv_blocks_normalised"],
    "epochs_per_task": [5, 20],
    "two_passes": [True, False],
    "norm": ["batch", "layer"],
}
SPACE = SearchSpace("norms_uci_har", BASE, AXES, seeds=range(5))
