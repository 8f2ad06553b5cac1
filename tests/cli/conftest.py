"""Fixtures of the data tests that those of the command use too."""

from __future__ import annotations

from tests.data.conftest import in_one_process, mitbih, write_mitbih_record

__all__ = ["in_one_process", "mitbih", "write_mitbih_record"]
