"""Whether this machine has a GPU."""

from __future__ import annotations

from clops_sweep.errors import BadInput


def check_gpu(option: str) -> None:
    """Sees whether PyTorch can use a GPU of this machine.

    Args:
        option: what asks for one.

    Raises:
        BadInput: it cannot.
    """
    import torch

    if not torch.cuda.is_available():
        version = torch.__version__
        raise BadInput(f"{option}: PyTorch {version} can use no GPU here; leave it out to compute on CPUs")
