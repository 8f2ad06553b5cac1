"""What a user reads about an error: no password, and no more than fits on a few lines."""

from __future__ import annotations

import pickle

import pytest

from clops_sweep.errors import DamagedStore, StoreError, UsageError, listed, masked, one_line


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


@pytest.mark.parametrize(
    "text",
    [
        "http://host:5000/a",
        "s3://bucket/a:b@c",
        "sqlite:////a:b@c",
        "s3://bucket?endpoint_override=127.0.0.1:5000",
        "a@b",
    ],
)
def test_an_address_without_a_password_is_shown_as_it_is(text: str) -> None:
    assert masked(text) == text


def test_a_long_error_keeps_its_beginning_and_its_end() -> None:
    error = str(UsageError(f"--set x={'9' * 6000}: expected a number from 0 to 1"))
    assert error.startswith("--set x=999")
    assert error.endswith("999: expected a number from 0 to 1")
    assert len(error) < 800


def test_a_long_list_says_how_many_more_there_are() -> None:
    assert listed(["a", 1]) == "a, 1"
    assert listed(range(1000)).startswith("0, 1, 2, 3")
    assert listed(range(1000)).endswith(" more")
    assert listed(["x" * 500, "y"]) == f"{'x' * 500} and 1 more"
