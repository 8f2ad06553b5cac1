"""Conditions on config fields: what they mean, and that they can do nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clops_sweep import RunConfig
from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.where import Where

COLUMNS = {"weight_seed", "domain", "ewc_strength"}
CONFIG = RunConfig(storage_fraction=0.5, seed=3, strategy="mir", batch_size=16)


@pytest.mark.parametrize(
    "expression",
    [
        "storage_fraction == 0.5",
        " storage_fraction == .5 ",
        "0.1 < storage_fraction <= 0.5",
        "strategy in ['clops', 'mir'] and not weight_replay",
        'strategy not in ("gem",) or False',
        "(storage_fraction == 0.5) & (seed == 3)",
        "(seed == 0) | ~weight_replay",
        "seed % 2 == 1 and batch_size // 4 == 4 and batch_size / 32 == 0.5",
        "-seed + 2 * seed == 3 and seed - 1 == 2",
        "weight_replay != False",
        "replay_ratio == 1",
        "not weight_replay",
        "task_order == 'sequential'",
        "True",
    ],
)
def test_holds(expression: str) -> None:
    assert Where(expression)(CONFIG) is True


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("storage_fraction == 0.5", False),
        ("storage_fraction < 0.5", False),
        ("storage_fraction >= 0.5", False),
        ("0.1 < storage_fraction + 1 < 9", False),
        ("storage_fraction in [0.5]", False),
        ("storage_fraction != 0.5", True),
        ("storage_fraction not in [0.5]", True),
        ("not storage_fraction == 0.5", True),
        ("storage_fraction == storage_fraction and storage_fraction != 0.5", False),
    ],
)
def test_a_field_that_is_not_set_equals_nothing(expression: str, holds: bool) -> None:
    config = RunConfig(strategy="finetune")
    assert config.get("storage_fraction") is None
    assert Where(expression)(config) is holds


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("storage_fraction = 0.5", "a condition compares with == and not with =.*storage_fraction == 0.5"),
        ("strategy = 'er'", "did you mean \"strategy == 'er'\""),
        ("strategy = 'a = b' and seed >= 1", "did you mean \"strategy == 'a = b' and seed >= 1\""),
        ("storag_fraction == 0.5", "unknown key 'storag_fraction' .did you mean 'storage_fraction'"),
        ("strategy == er", """there is no key 'er'; text needs quotes: strategy == "er";"""),
        ("seed == 0 and strategy != ewc", """no key 'ewc'; text needs quotes: strategy != "ewc";"""),
        ("strategy in [er, 'clops']", r"""no key 'er'; text needs quotes: strategy in \["er", 'clops'\]"""),
        ("seed < sed", "unknown key 'sed' .did you mean 'seed'"),
        ("storage_fraction ==", "invalid syntax"),
        ("", "invalid syntax"),
        ("a\0", "Python cannot read it|null byte"),
        ("seed", "neither true nor false"),
        ("seed + 1", "neither true nor false"),
        ("strategy == 'er' or 'clops'", "and, or take comparisons"),
        ("strategy < 3", "not supported between"),
        ("seed / 0 == 1", "division by zero"),
        ("seed in 3", "not iterable"),
        ("seed ** 9 == 1", "it takes"),
        ("seed is 3", "it takes"),
        ("strategy.upper() == 'MIR'", "it takes comparisons"),
        ("@pd.io.common.os.system('touch stolen')", "invalid syntax"),
        ("__import__('os').system('touch stolen')", "it takes comparisons"),
        ("[x for x in [1]] == [1]", "it takes comparisons"),
        ("(lambda: True)()", "it takes comparisons"),
        ("f'{seed}' == '3'", "it takes comparisons"),
        ("seed == 3; seed == 4", "invalid syntax"),
        ("(seed := 3) == 3", "it takes comparisons"),
        ("strategy[0] == 'm'", "it takes comparisons"),
        ("b'mir' == strategy", "it takes comparisons"),
        ("(" * 500 + "seed" + ")" * 500 + " == 3", "Python cannot read it|too many nested"),
        ("not " * 3000 + "weight_replay", "Python cannot read it|too many nested"),
    ],
)
def test_anything_else_is_one_sentence(
    expression: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=what) as refused:
        Where(expression)(CONFIG)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith("--where ")
    assert list(tmp_path.iterdir()) == []


FIELDS = ["seed", "batch_size", "mc_samples"]
NUMBERS = st.sampled_from([*FIELDS, "1", "3", "16", "20"])
COMPARED = st.builds(
    "({} {} {})".format, st.sampled_from(FIELDS), st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), NUMBERS
)
CONDITIONS = st.recursive(
    COMPARED,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["&", "|"]), inner), st.builds("(~{})".format, inner)
    ),
    max_leaves=6,
)


CONFIGS = [RunConfig(seed=seed, batch_size=size) for seed in (1, 3) for size in (3, 16)]
TABLE: Any = pd.DataFrame([config.model_dump(include=set(FIELDS)) for config in CONFIGS])


@given(CONDITIONS)
def test_the_same_as_pandas(condition: str) -> None:
    expected = TABLE.eval(condition, engine="python")
    holds = Where(condition)
    assert [holds(config) for config in CONFIGS] == expected.tolist()


def test_text_without_quotes_that_is_like_a_column_is_named_as_text() -> None:
    with pytest.raises(UsageError, match=r"""there is no column 'er'; text needs quotes: strategy == "er"$"""):
        Where("strategy == er", ["strategy", "error"])
    assert Where("auc == error", ["auc", "error"])({"auc": 1, "error": 1})
