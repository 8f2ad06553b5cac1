"""Rows of targets are numbered in lexicographic order."""

from __future__ import annotations

import pytest
import torch

from clops_sweep.learning.replay.division import numbered


@pytest.mark.parametrize(("rows", "columns", "values"), [(1, 1, 1), (200, 1, 2), (200, 4, 2), (300, 7, 3), (5, 3, 9)])
def test_rows_are_numbered_as_torch_does(rows: int, columns: int, values: int) -> None:
    stream = torch.Generator().manual_seed(rows + columns)
    targets = torch.randint(values, (rows, columns), generator=stream) / values
    assert torch.equal(numbered(targets), torch.unique(targets, dim=0, return_inverse=True)[1])


def test_no_rows_have_no_numbers() -> None:
    assert numbered(torch.zeros(0, 4)).tolist() == []
