from __future__ import annotations

import pandas as pd
import pytest

from clops_sweep.analysis.failures import failure_notices
from clops_sweep.store.rows import failure_reason


def failed(*errors: str | None) -> pd.DataFrame:
    return pd.DataFrame(
        {"run_id": range(len(errors) + 1), "status": ["failed"] * len(errors) + ["finished"], "error": [*errors, None]}
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            "Traceback (most recent call last):\n  File x, line 1\nUsageError: no such lead.\n\n",
            "UsageError: no such lead.",
        ),
        ("the worker died", "the worker died"),
        ("Traceback (most recent call last):\n  File x\nValueError: plain\nsecond line", "ValueError: plain"),
        ("Traceback (most recent call last):\nE: 1\n\nDuring ...\n\nTraceback (most recent call last):\nE: 2", "E: 2"),
        (
            "  + Exception Group Traceback (most recent call last):\n  |   File x\n  | ExceptionGroup: two (2 sub)\n"
            "  +-+---------------- 1 ----------------\n    | ValueError: x\n    +---------------------",
            "ExceptionGroup: two (2 sub)",
        ),
        ("E: \x1b[2J", "E: \\x1b[2J"),
        ("  \n", "unknown error"),
        (None, "unknown error"),
        (float("nan"), "unknown error"),
    ],
)
def test_a_reason_is_the_last_line_with_words(error: object, said: str) -> None:
    assert failure_reason(error) == said


def test_equal_reasons_count_together_whatever_led_to_them() -> None:
    runs = failed("line 1\nE: one", "E: two", "line 2\nE: one\n", None, "E: three", "E: four")
    (said,) = failure_notices(runs)
    assert said == "6 runs failed: 2 times E: one; once E: two; once unknown error; the rest for 2 other reasons."


def test_nothing_is_said_where_no_run_has_failed() -> None:
    assert list(failure_notices(failed())) == []
    assert list(failure_notices(pd.DataFrame({"status": ["missing"]}))) == []
    assert list(failure_notices(failed("E: x."))) == ["1 run failed: once E: x."]


def test_a_long_reason_is_cut() -> None:
    assert list(failure_notices(failed("E: " + "x" * 500))) == [f"1 run failed: once E: {'x' * 197}…."]
