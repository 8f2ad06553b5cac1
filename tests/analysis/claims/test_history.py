"""Earlier verdicts on claims: what a store keeps of them, and what tables say of those that changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from clops_sweep import Claim, Contrast, RunConfig, SearchSpace, Side
from clops_sweep.analysis.claims.history import history_as_data, history_in_words, verdicts_by_file
from clops_sweep.analysis.claims.verdicts import Verdict
from clops_sweep.analysis.collect import collect
from clops_sweep.analysis.report.claims_section import claims_as_data, claims_in_words, claims_text
from clops_sweep.errors import DamagedStore
from clops_sweep.experiment.spaces.claims import FileClaims
from clops_sweep.store.merging import merge_runs
from clops_sweep.store.run_store import RunStore

ER, FINETUNE = (Side(name, {"strategy": name}) for name in ("er", "finetune"))
CLAIM = Claim("er_helps", "ER is above fine-tuning", Contrast(ER, FINETUNE), scenario="class_il")
ABOVE = {0: 0.11, 1: 0.1, 2: 0.12, 3: 0.1}
"""Differences by seed, which are clearly above 0."""


def methods(seeds: int) -> SearchSpace:
    return SearchSpace("methods", RunConfig(), {"strategy": ["finetune", "er"]}, seeds=range(seeds))


def finish(folder: Path, generated: ModuleType, differences: Mapping[int, float]) -> None:
    """Finish both runs of some seeds, with these differences in AUC."""
    runs = []
    for seed, difference in differences.items():
        runs.append((RunConfig(strategy="finetune", seed=seed), {"auc": 0.6}))
        runs.append((RunConfig(strategy="er", seed=seed), {"auc": 0.6 + difference}))
    generated.write_given_runs(RunStore(folder), runs)


def verdict(folder: Path, seeds: int, claim: Claim = CLAIM, *, record: bool = True) -> Verdict:
    store = RunStore(folder)
    space = methods(seeds)
    experiments = collect([space], store.read("runs"))
    file = FileClaims((claim,), frozenset({"methods"}))
    (found,) = verdicts_by_file([file], experiments, store, record=record)
    return found


def kept(folder: Path) -> list[str]:
    return sorted(path.read_text() for path in (folder / "verdicts").glob("*.json"))


def test_a_verdict_that_more_seeds_reverse_names_the_earlier_one(tmp_path: Path, generated: ModuleType) -> None:
    finish(tmp_path, generated, ABOVE)
    first = verdict(tmp_path, 4)
    assert (first.outcome, history_in_words(first)) == ("holds", "")
    (before,) = kept(tmp_path)
    finish(tmp_path, generated, {4: -0.5, 5: 0.4, 6: -0.4})
    second = verdict(tmp_path, 7)
    (day,) = {row["at"][:10] for row in history_as_data([first])}
    said = f"decided as 'holds' on {day} with 4 pairs; now undecided with 7 pairs"
    assert (second.outcome, history_in_words(second)) == ("undecided", said)
    assert f"; {said})." in claims_in_words([second])[0]
    assert f"Changed verdict: ER is above fine-tuning: {said}." in claims_text([second], "not sealed").notes
    assert [row["changed"] for row in claims_as_data([second])] == [said]
    assert before in kept(tmp_path)  # nothing is replaced
    assert [row["outcome"] for row in history_as_data([second])] == ["holds", "undecided"]


def test_a_record_has_the_numbers_and_the_runs_of_the_verdict(tmp_path: Path, generated: ModuleType) -> None:
    finish(tmp_path, generated, ABOVE)
    found = verdict(tmp_path, 4)
    (text,) = kept(tmp_path)
    (row,) = json.loads(text)["verdicts"]
    evidence = found.weakest
    assert (row["claim"], row["outcome"], row["n"], row["pairs"]) == ("er_helps", "holds", 4, 4)
    assert row["difference"] == pytest.approx(sum(ABOVE.values()) / 4)
    assert (row["low"], row["high"], row["level"]) == (evidence.interval.low, None, 0.95)
    assert (row["p_for"], row["p_against"]) == (found.p_for, found.p_against)
    assert set(row["run_ids"]) == set(found.runs.run_ids)
    assert len(row["run_ids"]) == 8


def test_without_new_runs_nothing_is_added(tmp_path: Path, generated: ModuleType) -> None:
    finish(tmp_path, generated, ABOVE)
    verdict(tmp_path, 4)
    verdict(tmp_path, 4)
    assert len(kept(tmp_path)) == 1
    finish(tmp_path, generated, {4: 0.11})
    assert verdict(tmp_path, 5).outcome == "holds"
    verdict(tmp_path, 5)
    assert len(kept(tmp_path)) == 2  # the same verdict on more runs


def test_a_page_that_only_shows_verdicts_adds_nothing(tmp_path: Path, generated: ModuleType) -> None:
    finish(tmp_path, generated, ABOVE)
    assert verdict(tmp_path, 4, record=False).earlier == ()
    assert not (tmp_path / "verdicts").exists()


def test_an_edited_claim_is_not_taken_for_the_one_before(tmp_path: Path, generated: ModuleType) -> None:
    finish(tmp_path, generated, ABOVE)
    verdict(tmp_path, 4)
    edited = Claim("er_helps", "ER is as good", Contrast(ER, FINETUNE), scenario="class_il", says="same")
    found = verdict(tmp_path, 4, edited)
    assert found.outcome == "does not hold"
    said = history_in_words(found)
    assert said.endswith("with 4 pairs, before the claim was edited; now 'does not hold' with 4 pairs of the same runs")


def test_a_claim_whose_runs_are_of_other_settings_now_keeps_its_verdict(tmp_path: Path, generated: ModuleType) -> None:
    finish(tmp_path, generated, ABOVE)
    verdict(tmp_path, 4)
    (without,) = verdicts_by_file([FileClaims((CLAIM,), frozenset({"methods"}))], [], RunStore(tmp_path), every=True)
    assert history_in_words(without).endswith("with 4 pairs; now undecided with 0 pairs")


def test_an_edited_record_is_named(tmp_path: Path, generated: ModuleType) -> None:
    finish(tmp_path, generated, ABOVE)
    verdict(tmp_path, 4)
    (path,) = (tmp_path / "verdicts").iterdir()
    path.write_text(path.read_text().replace('"holds"', '"undecided"'))
    with pytest.raises(DamagedStore, match="was edited after these verdicts were recorded"):
        verdict(tmp_path, 4)


def test_a_store_that_cannot_be_written_to_is_told(tmp_path: Path, generated: ModuleType) -> None:
    finish(tmp_path, generated, ABOVE)
    (tmp_path / "verdicts").symlink_to("/proc/no such folder")  # which cannot be made
    with pytest.warns(UserWarning, match=r"verdicts/.*\.json: these verdicts are not recorded \("):
        found = verdict(tmp_path, 4)
    assert (found.outcome, found.earlier) == ("holds", ())


def test_merge_carries_over_the_verdicts_of_the_other_store(tmp_path: Path, generated: ModuleType) -> None:
    """A verdict that was shown on the merged store was forgotten: a peek that left no trace."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    finish(theirs, generated, ABOVE)
    verdict(theirs, 4)
    finish(ours, generated, {4: -0.5, 5: 0.4, 6: -0.4})
    assert verdict(ours, 7).outcome == "undecided"
    own = kept(ours)
    for _ in range(2):  # the second time, nothing is new
        merge_runs(RunStore(ours), RunStore(theirs))
        assert sorted(kept(ours)) == sorted([*own, *kept(theirs)])
    merged = verdict(ours, 7, record=False)
    assert [look.outcome for look in merged.earlier] == ["holds", "undecided"]
    assert "decided as 'holds' on " in history_in_words(merged)


def test_a_store_with_an_edited_verdict_is_not_merged(tmp_path: Path, generated: ModuleType) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    finish(theirs, generated, ABOVE)
    verdict(theirs, 4)
    (path,) = (theirs / "verdicts").glob("*.json")
    path.write_text(path.read_text().replace('"holds"', '"undecided"'))
    with pytest.raises(DamagedStore, match="was edited after these verdicts were recorded"):
        merge_runs(RunStore(ours), RunStore(theirs))
    assert RunStore(ours).statuses() == {}
    assert kept(ours) == []
