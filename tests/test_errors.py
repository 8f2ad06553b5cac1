"""What a user reads about an error: no password, and no more than fits on a few lines."""

from __future__ import annotations

import pickle

import pytest

from clops_sweep.errors import (
    DamagedStore,
    StoreError,
    UsageError,
    either,
    masked,
    nearest,
    one_line,
    option,
    prefixed,
    speaking_python,
)


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


def test_an_error_begins_with_each_place_once() -> None:
    with pytest.raises(UsageError) as raised, prefixed("space.py"), prefixed("seeds"), prefixed("space.py"):
        raise UsageError("nothing given")
    assert str(raised.value) == "seeds: space.py: nothing given"
    with pytest.raises(UsageError) as raised, prefixed("space 'a'"):
        raise UsageError("space 'a', axis 'b': no values", place="space 'a'")
    assert str(raised.value) == "space 'a', axis 'b': no values"
    assert pickle.loads(pickle.dumps(raised.value)).places == ("space 'a'",)


def test_a_place_is_named_though_the_error_begins_with_the_same_letters() -> None:
    with pytest.raises(UsageError) as raised, prefixed("seed"):
        raise UsageError("seeds has no values")
    assert str(raised.value) == "seed: seeds has no values"


def test_a_long_error_keeps_its_beginning_and_its_end() -> None:
    error = str(UsageError(f"--set x={'9' * 6000}: expected a number from 0 to 1"))
    assert error.startswith("--set x=999")
    assert error.endswith("999: expected a number from 0 to 1")
    assert len(error) < 800


@pytest.mark.parametrize(
    ("name", "value", "of_command", "of_python"),
    [
        ("data_root", "DIR", "--data-root DIR", "data_root=DIR"),
        ("address", "HOST:PORT", "--address HOST:PORT", "address=HOST:PORT"),
        ("device", "gpu", "--device gpu", "device='gpu'"),
        ("gpus_per_trial", 0.25, "--gpus-per-trial 0.25", "gpus_per_trial=0.25"),
        ("limit", 1, "--limit 1", "limit=1"),
        ("max_retries", None, "--max-retries", "max_retries"),
        ("settings", None, "--set", "settings"),
        ("retry_failed", None, "--retry failed", "retry_failed"),
    ],
)
def test_an_option_is_named_as_its_user_gives_it(name: str, value: object, of_command: str, of_python: str) -> None:
    assert option(name, value) == of_command
    with speaking_python():
        assert option(name, value) == of_python
        assert either("a command", "a call") == "a call"
    assert option(name, value) == of_command


def test_an_error_of_a_function_ends_its_speaking_python() -> None:
    @speaking_python()
    def refused(name: str) -> None:
        raise UsageError(f"{option(name)}: expected another")

    for _ in range(2):
        with pytest.raises(UsageError, match=r"^max_retries: expected another$"):
            refused("max_retries")
    assert option("max_retries") == "--max-retries"


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("der", " (did you mean 'er' or 'derpp'?)"),
        ("DER++", " (did you mean 'derpp'?)"),
        ("fine", " (did you mean 'finetune'?)"),
        ("xyz", ""),
    ],
)
def test_names_that_begin_with_what_was_typed_are_suggested_too(typed: str, suggested: str) -> None:
    assert nearest(typed, ["er", "derpp", "finetune", "er_ace"]) == suggested
