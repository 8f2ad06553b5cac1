"""Notes on people who may be there twice, as pages show them: without any name of a person, a recording or a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clops_sweep.data.declared.alike_names import (
    alike_domains,
    alike_people,
    misspelt_domains,
    people_with_rounded_numbers,
)
from clops_sweep.data.nameless_notes import doubt_people, leaks_without_names
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.data.same_samples import OF_LEAKS, SeenFrames
from tests.data.declared_files import declare, forget


def notes_on(first: str, second: str) -> list[str]:
    """Return a note of each maker, on two people, recordings or domains with these names."""
    alike = alike_people([first, first.swapcase() + "x", f"{first}x"])
    rounded = people_with_rounded_numbers(["1.23457E+11", second])
    domains = alike_domains(first, {f"{second} a": [first, second], f"{second} A": [f"{first} 1"]})
    misspelt = misspelt_domains(second, {"Cardiology": [first] * 40, "Cardiologz": [second]})
    notes = [alike or "", rounded or "", domains or "", *misspelt]
    for together in (1, 2):
        notes += notes_on_frames(together, [first, second])
    return [note for note in notes if note]


def notes_on_frames(together: int, names: Sequence[str]) -> list[str]:
    """Return the notes on frames of two people that are equal, overlap and have one shape."""
    stream = np.random.default_rng(0)
    notes = []
    long = stream.integers(-1000, 1000, size=(8, 400)).astype(np.int16)
    pieces = [long[:, :250], long[:, 100:350]]
    shaped = stream.integers(-1000, 1000, size=(8, 256)).astype(np.int16)
    for frames in ([shaped, shaped], pieces, [shaped, 3 * shaped]):
        seen = SeenFrames(together)
        for of_person in frames:
            seen.add(of_person, np.arange(len(of_person), dtype=np.int16) % together)
        notes += seen.note(np.repeat(np.array([0, 1], np.int32), 8), names)
    return notes


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=30)
TRICKY = st.sampled_from(["7, such as Ann: 3", "3; 2 of them", "{0}", "records with the samples of an earlier", "H003"])


@settings(max_examples=40, deadline=None)
@given(NAMES | TRICKY, NAMES | TRICKY)
def test_sentences_do_not_depend_on_names(first: str, second: str) -> None:
    usual = leaks_without_names(notes_on("Ann", "Bob"))
    others = leaks_without_names(notes_on(first, second))
    assert set(others) <= set(usual)


def test_each_kind_of_notes_is_covered() -> None:
    notes = notes_on("Ann", "Bob")
    begins = {begin for begin in OF_LEAKS if any(note.startswith(begin) for note in notes)}
    assert begins == set(OF_LEAKS) - {"records with the samples"}
    sentences = leaks_without_names(notes)
    assert len(sentences) >= len(begins)
    for sentence in sentences:
        assert "Ann" not in sentence
        assert "Bob" not in sentence
        assert "Cardiolog" not in sentence
    assert "a note of the preparation" not in " ".join(sentences), "each kind has a sentence of its own"


def test_a_note_of_other_words_has_no_names_either() -> None:
    notes = [f"{begin} Ann and Bob" for begin in OF_LEAKS]
    sentences = " ".join(leaks_without_names(notes))
    assert sentences
    assert "Ann" not in sentences
    assert "Bob" not in sentences


def test_domains_and_repeats_of_one_patient_put_no_person_in_doubt() -> None:
    repeated = "records with the samples of an earlier record: 1 (a repeats b); {}; leave them out with data prepare "
    repeated += "--on-error skip"
    own = repeated.format("each is of the same patient as the earlier one")
    of_others = repeated.format("1 of them is of another patient than the earlier one")
    domains = alike_domains("ward", {"ICU": ["a"], "icu": ["b"]})
    assert domains is not None
    assert not doubt_people([])
    assert not doubt_people(leaks_without_names([own, domains]))
    assert doubt_people(leaks_without_names([of_others]))
    assert doubt_people(leaks_without_names(notes_on("Ann", "Bob")))


TWICE = """
N = 144
PEOPLE = np.arange(N) // 4

@dataset("twice")
def twice(data_root):
    signals = np.random.default_rng(1).normal(size=(N, 1, 100)).astype(np.float32)
    signals[PEOPLE == 20] = signals[PEOPLE == 3]
    people = [f"QZ{person:02}" for person in PEOPLE]
    people[-1] = "qz 35"
    return Recordings(
        signals, 50, ("II",), "mV", np.arange(N) % 2, ("SR", "AF"), people,
        names=[f"KX{number}" for number in range(N)],
    )
"""


def test_frames_have_the_numbers_of_a_preparation(tmp_path: Path) -> None:
    declare(tmp_path / "twice.py", TWICE)
    try:
        notes = prepare("twice", prepared_root=tmp_path / "prepared", data_root=None).manifest.notes
        leaks = open_frames("twice", prepared_root=tmp_path / "prepared").leaks
    finally:
        forget()
    assert any("KX" in note for note in notes), "the notes themselves name recordings"
    assert len(leaks) == 2
    assert leaks[0].startswith("people with names that differ only in case, marks, spaces or leading zeros: 1;")
    assert leaks[1].startswith("records with the samples of an earlier record: 4; 4 of them are of another")
    for name in ("QZ", "qz", "KX"):
        assert name not in " ".join(leaks)
