"""Claims that a search-space file declares: what is refused, and which files are read."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from clops_sweep import Claim, Contrast, Side, UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.claims import check_claims, claims_as_json

ER, FINETUNE = Side("ER", {"strategy": "er"}), Side("fine-tuning", {"strategy": "finetune"})
CONFIGS = [RunConfig(strategy="er"), RunConfig(strategy="finetune")]
GOOD = Claim("good", "ER is above fine-tuning", Contrast(ER, FINETUNE))


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        (GOOD, "CLAIMS: expected a list"),
        ([GOOD, GOOD], "two claims have the key 'good'"),
        ([Claim("a", "x", Contrast(None, None))], "both sides are the number 0"),
        ([Claim("a", "x", ())], "expected a Contrast"),
        ([Claim("a", "x", Contrast(ER, FINETUNE), says="less")], "says = 'less'; expected more, same, not less"),
        ([Claim("a", "x", Contrast(ER, FINETUNE), matters=0)], "matters = 0"),
        (
            [Claim("a", "x", Contrast(ER, FINETUNE, "auk"))],
            r"measure 'auk' .*\(did you mean 'auc'\?\)",
        ),
        ([Claim("a", "x", Contrast(ER.but("b", seed_size=3), FINETUNE))], "no run of this file has strategy = 'er'"),
        ([Claim("a", "x", Contrast(ER, FINETUNE), dataset="mitbih")], "no run of this file has strategy = 'er'"),
        (
            [Claim("a", "x", Contrast(ER, None, places=({"memory_fractoin": 0.1},)))],
            r"claim 'a': place memory_fractoin = 0.1: unknown key .*did you mean 'memory_fraction'",
        ),
        (
            [Claim("a", "x", Contrast(None, ER, places=({}, {"learning_rate": 0.5})))],
            "claim 'a': place learning_rate = 0.5: no run of side 'ER' has it; expected settings of requested runs",
        ),
        ([Claim("a", "x", Contrast(ER, FINETUNE, places=()))], r"claim 'a': places = \(\): expected one mapping"),
        ([Claim("a", "x", Contrast(ER, FINETUNE, places="seed"))], "claim 'a': places = 'seed': expected one mapping"),  # type: ignore[arg-type]
    ],
)
def test_bad_claims_are_refused(claims: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_claims(claims, CONFIGS)


def test_what_a_seal_hashes_is_everything_that_a_claim_says() -> None:
    assert check_claims([GOOD], CONFIGS) == (GOOD,)
    edited = Claim("good", "ER is above fine-tuning", Contrast(ER, FINETUNE), matters=0.01)
    assert claims_as_json([GOOD])["good"]["contrasts"][0]["ours"] == {"name": "ER", "settings": {"strategy": "er"}}
    assert claims_as_json([GOOD]) != claims_as_json([edited])


def _edited(value: Any) -> Any:
    """Return another value for a field of a claim, of a contrast or of a side."""
    if value is None or isinstance(value, str):
        return "edited"
    return {"seed": 7} if isinstance(value, dict) else (*value, {"seed": 7})


@pytest.mark.parametrize("of", [GOOD.contrasts[0], ER], ids=["contrast", "side"])
def test_every_field_of_contrasts_and_sides_is_in_their_json(of: Contrast | Side) -> None:
    def sealed(part: Any) -> dict[str, Any]:
        contrast = part if isinstance(part, Contrast) else Contrast(part, FINETUNE)
        return claims_as_json([replace(GOOD, contrasts=(contrast,))])

    for attribute in fields(of):
        value = getattr(of, attribute.name)
        other = FINETUNE.but("other") if isinstance(value, Side) else _edited(value)
        edited: Any = replace(of, **{attribute.name: other})
        assert sealed(edited) != sealed(of), attribute.name
