"""Tests that need braindecode are skipped where it is not installed, or torchaudio does not load beside PyTorch."""

from __future__ import annotations

import importlib
import warnings

import pytest

from clops_sweep.experiment.plugins import braindecode


def require_braindecode() -> None:
    """Import braindecode once, without its warnings, or skip the test."""
    why = braindecode.why_unavailable()
    if why is not None:
        pytest.skip(why)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module("braindecode.models")
        except (ImportError, OSError) as error:
            pytest.skip(f"braindecode: {error}")
