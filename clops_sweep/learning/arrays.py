"""NumPy arrays on the memory of tensors, as the native kernels take them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[np.generic]


def array_of(tensor: torch.Tensor) -> Array:
    """Return the tensor's own memory, or a copy if the tensor is a strided view."""
    array: Array = tensor.contiguous().numpy()
    return array


def optional_array(tensor: torch.Tensor | None) -> Array | None:
    """As `array_of`; None for None."""
    return None if tensor is None else array_of(tensor)
