"""Whether this machine has a GPU for trials."""

from __future__ import annotations

from clops_sweep.errors import BadInput


def check_gpu() -> None:
    """Sees whether PyTorch can use a GPU of this machine, for trials that are to have a share of one.

    Raises:
        BadInput: it cannot.
    """
    import torch

    if not torch.cuda.is_available():
        version = torch.__version__
        raise BadInput(f"--gpus-per-trial: PyTorch {version} can use no GPU here; leave it out to compute on CPUs")
