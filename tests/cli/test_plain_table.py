"""Tables on standard output."""

from __future__ import annotations

import pytest

from clops_sweep.cli.plain_table import print_table


def test_a_narrow_output_cuts_off_no_number_and_no_column(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = ["0.926 [0.812, 0.987]", "-0.090 [-0.144, -0.036]"]
    chosen = "learning_rate 0.000123, replay_ratio 0.5, ewc_strength 1000"
    headings = ["method", "chosen", "balanced_accuracy", "optimism"]
    print_table(headings, [["er", chosen, *numbers]], wrapped=["chosen"], width=30)
    printed = capsys.readouterr().out
    for text in (*headings, *numbers, *chosen.split()):
        assert text in printed
    expected = [word for text in (*headings, "er", chosen, *numbers) for word in text.split()]
    assert sorted(printed.split()) == sorted(expected)
