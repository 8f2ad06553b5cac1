"""TS-ACL: recursive least squares on maps of several scales (Fan et al., 2024, arXiv:2410.15954)."""

from __future__ import annotations

from clops_sweep.learning.strategies.acil import AnalyticLearning


class TimeSeriesAnalyticLearning(AnalyticLearning):
    """`acil` on h = relu(P m), P as in `acil`, [`projection_size`, M], with ridge penalty `acil_ridge`.

    m(x) [M] holds the means over time of the inputs of each convolution after the first, and the features f of the last
    layer (see `MultiScale`): in a network of blocks, every block's output. The network is trained on the first task by
    backpropagation, with a linear layer on h as its head, and then frozen. After all tasks

        W = (sum_i h_i h_i^T + gamma I)^-1 sum_i h_i y_i^T.

    Version 1 of the paper is `acil` with an encoder for time series, trained on the first task. Version 3 (Li, Fan et
    al., 2025) fuses features of several scales, and averages the predictions of an ensemble of random layers. Here is
    one random layer, and the fusion is the concatenation above. On a network without convolutions it is `acil`.
    """
