"""Each verdict of the page has a mark: its shape and sign tell verdicts apart without colours, also in print."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from clops_sweep import analysis
from clops_sweep.analysis.update.measures import Quantity
from clops_sweep.analysis.update.page import verdict_in_words
from clops_sweep.analysis.update.verdicts import decision

STYLE = (Path(analysis.__file__).parent / "update" / "page.css").read_text()
CERTAIN = decision("max_flips", "", 0.5, Quantity(0.1, 0.05, 0.2), 100, 30)
VERDICTS = [
    (CERTAIN, "\\2713"),
    (replace(CERTAIN, certain=False, crosses=True), "\\2713"),
    (decision("max_flips", "", 0.1, Quantity(0.3, 0.2, 0.4), 100, 30), "\\2715"),
    (decision("max_flips", "", 0.1, Quantity(0.3, 0.2, 0.4), 100, 5), "\\2715"),
    (decision("max_flips", "", 0.5, Quantity(0.1, 0.05, 0.2), 10, 2), "?"),
    (replace(CERTAIN, holds=None, certain=False), "?"),
    (decision("max_group_flips", "sex f", 0.5, Quantity(float("nan"), 0, 0), 0, 0), "?"),
]


@pytest.mark.parametrize(("verdict", "sign"), VERDICTS)
def test_each_verdict_has_a_sign_of_its_own(verdict: object, sign: str) -> None:
    words = verdict_in_words(verdict, "patient")
    rules = re.findall(r"([^{}]*#decisions[^{}]*::before) \{[^}]*content: \"([^\"]+)\" / \"\"", STYLE)
    signs = []
    for selectors, content in rules:
        beginnings = re.findall(r'data-sort\^="([a-z]+)"', selectors)
        if words.startswith(tuple(beginnings)):
            signs.append(content)
    assert signs == [sign], words


def test_an_outline_stands_for_a_verdict_that_is_not_certain_and_marks_are_printed() -> None:
    assert '#decisions td[data-sort*="not certain"]:first-child::before { background: #fff' in STYLE
    (of_all,) = re.findall(r"\.verdict::before, #decisions[^{]*\{([^}]*)\}", STYLE)
    assert "print-color-adjust: exact" in of_all
