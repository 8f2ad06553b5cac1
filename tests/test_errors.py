"""What a user reads about an error: no password, and no more than fits on a few lines."""

from __future__ import annotations

import pickle

import pytest

from clops_sweep.errors import DamagedStore, StoreError, UsageError, masked, one_line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://key:SECRET@bucket/results?region=eu", "s3://key:***@bucket/results?region=eu"),
        ("see 's3://key:SE/CR+ET@x=@bucket' there", "see 's3://key:***@bucket' there"),
        ("postgresql://me:SECRET@host/db?password=SECRET&x=1", "postgresql://me:***@host/db?password=***&x=1"),
        ("s3://bucket/results?secret_key=SECRET", "s3://bucket/results?secret_key=***"),
    ],
)
def test_an_address_is_shown_without_its_password(text: str, expected: str) -> None:
    assert masked(text) == one_line(text) == expected
    for kind in (UsageError, DamagedStore, StoreError):
        assert str(kind(f"results {text}")) == f"results {expected}"
        assert "SECRET" not in repr(pickle.loads(pickle.dumps(kind(text))))


def test_a_long_error_keeps_its_beginning_and_its_end() -> None:
    error = str(UsageError(f"--set x={'9' * 6000}: expected a number from 0 to 1"))
    assert error.startswith("--set x=999")
    assert error.endswith("999: expected a number from 0 to 1")
    assert len(error) < 800
