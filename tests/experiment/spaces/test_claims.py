"""Claims that a search-space file declares: what is refused, and which files are read."""

from __future__ import annotations

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
