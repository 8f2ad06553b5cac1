"""Windows of braindecode become recordings. Skipped where it is not installed, or does not load."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from clops_sweep import Recordings
from clops_sweep.errors import UsageError

pytestmark = pytest.mark.nightly

MAPPING = {"left": 0, "right": 1, "rest": 2}
CLASSES = ["left hand", "right hand", "rest"]
RATE, PEOPLE, EVENTS = 100.0, 5, 9


@pytest.fixture(scope="module")
def braindecode() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import braindecode.datasets
            import braindecode.preprocessing
    except (ImportError, OSError) as error:
        pytest.skip(f"braindecode: {error}")
    return braindecode


def recorded(braindecode: Any, rates: tuple[float, ...] = (RATE,) * PEOPLE) -> Any:
    """A data set of two channels and a stimulus channel, a recording for each person."""
    import mne

    parts = []
    for person, rate in enumerate(rates):
        info = mne.create_info(["C3", "C4", "STI"], rate, ["eeg", "eeg", "stim"], verbose="error")
        values = np.random.default_rng(person).standard_normal((3, int(20 * rate))) * 1e-6
        raw = mne.io.RawArray(values, info, verbose="error")
        raw.set_annotations(mne.Annotations(np.arange(1, 19, 2.0), [1.0] * EVENTS, list(MAPPING) * 3))
        description = {"subject": f"S{person}", "session": "0train" if person % 2 else "1test", "sex": "f"}
        parts.append(braindecode.datasets.RawDataset(raw, description=description))
    return braindecode.datasets.BaseConcatDataset(parts)


@pytest.mark.parametrize("as_epochs", [False, True])
def test_windows_become_recordings(braindecode: Any, as_epochs: bool) -> None:
    windows = braindecode.preprocessing.create_windows_from_events(
        recorded(braindecode), mapping=MAPPING, preload=True, use_mne_epochs=as_epochs, verbose="error"
    )
    found = Recordings.from_braindecode(
        windows, CLASSES, units="V", domains={"session": "session"}, groups={"sex": "sex"}
    )
    assert len(found) == PEOPLE * EVENTS
    assert found.common.channels == ("C3", "C4")
    assert found.common.classes == tuple(CLASSES)
    assert found.columns.labels.tolist() == [0, 1, 2] * 3 * PEOPLE
    (held,) = found.sources()
    expected = np.stack([windows[place][0][:2] for place in range(len(windows))])
    assert np.array_equal(held.array, expected)
    assert held.rate == RATE


def test_a_person_is_the_subject_of_the_description(braindecode: Any) -> None:
    windows = braindecode.preprocessing.create_windows_from_events(
        recorded(braindecode), mapping=MAPPING, preload=True, verbose="error"
    )
    found = Recordings.from_braindecode(windows, CLASSES, units="V", channels=["C4"])
    assert found.common.channels == ("C4",)
    assert [str(name) for name in found.columns.patients[::EVENTS]] == [f"S{person}" for person in range(PEOPLE)]


def test_what_has_no_windows_targets_or_columns_is_refused(braindecode: Any) -> None:
    raw = recorded(braindecode)
    with pytest.raises(UsageError, match="RawDataset holds no windows; create them first"):
        Recordings.from_braindecode(raw, CLASSES, units="V")
    fixed = braindecode.preprocessing.create_fixed_length_windows(
        raw, 0, None, 200, 200, on_last_window="drop", preload=True, verbose="error"
    )
    with pytest.raises(UsageError, match="window 0 of recording 0 has the target -1; expected the position"):
        Recordings.from_braindecode(fixed, CLASSES, units="V")
    windows = braindecode.preprocessing.create_windows_from_events(raw, mapping=MAPPING, preload=True, verbose="error")
    with pytest.raises(UsageError, match="the description of recording 0 has no 'person'; it has subject, session"):
        Recordings.from_braindecode(windows, CLASSES, units="V", patient="person")
    with pytest.raises(UsageError, match="expected a BaseConcatDataset of windows, not 3"):
        Recordings.from_braindecode(3, CLASSES, units="V")
    mixed = braindecode.preprocessing.create_windows_from_events(
        recorded(braindecode, (100.0, 200.0)), mapping=MAPPING, preload=True, verbose="error"
    )
    with pytest.raises(UsageError, match="recording 1 has channels C3, C4 at 200 Hz; expected channels C3, C4 at 100"):
        Recordings.from_braindecode(mixed, CLASSES, units="V")


def resampled_windows(braindecode: Any, as_epochs: bool) -> Any:
    """Windows of 100 samples that were resampled from 100 to 50 Hz after they were created."""
    windows = braindecode.preprocessing.create_windows_from_events(
        recorded(braindecode), mapping=MAPPING, preload=True, use_mne_epochs=as_epochs, verbose="error"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        braindecode.preprocessing.preprocess(windows, [braindecode.preprocessing.Preprocessor("resample", sfreq=50)])
    return windows


def test_windows_that_resampling_moved_are_refused(braindecode: Any) -> None:
    windows = resampled_windows(braindecode, as_epochs=False)
    with pytest.raises(UsageError, match="recording 0 has 1000 samples and a window that ends at sample 1800;"):
        Recordings.from_braindecode(windows, CLASSES, units="V")


def test_resampled_epochs_become_recordings(braindecode: Any) -> None:
    windows = resampled_windows(braindecode, as_epochs=True)
    (held,) = Recordings.from_braindecode(windows, CLASSES, units="V").sources()
    assert (held.rate, held.array.shape) == (50, (PEOPLE * EVENTS, 2, 50))
