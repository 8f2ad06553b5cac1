"""Closed-form heads and replay on UCI-HAR, with batch norm and layer norm: see docs/training.md.

Six activities in three tasks of two, one output per activity, and a memory of 5 %. The network has four blocks of
convolution, norm, ReLU, pooling and dropout, as in the benchmark of Qiao et al. (KDD 2024). The data do not identify
people, so the publisher's test set is used: seeds are the units, and differences are about this split.
"""

from clops_sweep import IntOption, SearchSpace, network
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space
from clops_sweep.search_spaces.methods_mitbih import memory

_, UCI_HAR = load_spaces(shipped_space("networks"))  # declares the data set


@network("conv_blocks", options={"conv_width": IntOption(16, ge=1, le=1024, log=True)})
def conv_blocks(channels, samples, outputs, *, conv_width):
    """Four blocks, the mean over time, and a linear layer."""
    from torch import nn

    blocks, before = [], channels
    for width in (conv_width, 2 * conv_width, 4 * conv_width, 2 * conv_width):
        convolution = nn.Conv1d(before, width, 5, padding=2)
        blocks += [convolution, nn.BatchNorm1d(width), nn.ReLU(), nn.MaxPool1d(2), nn.Dropout(0.3)]
        before = width
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(before, outputs))


METHODS = ("finetune", "er", "clops", "lwf", "ncm", "slda", "ranpac", "acil", "ts_acl", "icarl", "joint")
BASE = UCI_HAR.base.replace(
    network="conv_blocks", learning_rate=1e-3, batch_size=32, epochs_per_task=5, normalize="none", **memory(0.05)
)
SPACE = SearchSpace("heads_uci_har", BASE, {"norm": ["batch", "layer"], "strategy": METHODS}, seeds=range(3))
