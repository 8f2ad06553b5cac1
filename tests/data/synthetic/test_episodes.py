"""Sources of overlap between generated rhythms: episodes that end, and beats of another origin."""

from __future__ import annotations

import numpy as np
import pytest

from clops_sweep.data.synthetic.episodes import Difficulty, draw_dipole
from clops_sweep.data.synthetic.rhythms import FRAME_SECONDS, draw_patient

LENGTH = 2500
TIME = np.arange(LENGTH) * FRAME_SECONDS / LENGTH
LASTING = Difficulty(short_episodes={}, episode_end=(0.4, 0.4), ectopy=0.0, artefacts=0.0)


def _drawn(rhythm: str, seed: int, difficulty: Difficulty) -> np.ndarray:
    stream = np.random.default_rng(seed)
    return draw_dipole(rhythm, draw_patient(stream), stream, LENGTH, difficulty)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rhythm", ["VT", "SVT", "BIGEMINY", "JUNCTIONAL"])
def test_an_episode_is_the_rhythm_until_it_ends_and_sinus_rhythm_after(rhythm: str, seed: int) -> None:
    short = Difficulty(short_episodes={rhythm: 1.0}, episode_end=(0.7, 0.7), ectopy=0.0, artefacts=0.0)
    lasting, ended = _drawn(rhythm, seed, LASTING), _drawn(rhythm, seed, short)
    end, reach = 0.7 * FRAME_SECONDS, 0.6  # reach of a beat's waves to either side
    longest = (
        0.7 if rhythm in ("VT", "SVT") else 2.0
    )  # longest interval: the last beat of the episode may be that long before its end
    before = end - longest - reach > TIME
    assert before.sum() > 400
    np.testing.assert_allclose(ended[:, before], lasting[:, before], atol=1e-3)
    assert np.abs(ended - lasting)[:, end + reach < TIME].max() > 0.2


@pytest.mark.parametrize("seed", range(4))
def test_what_follows_an_episode_has_the_shape_of_the_patients_own_sinus_beats(seed: int) -> None:
    short = Difficulty(short_episodes={"VT": 1.0}, episode_end=(0.2, 0.2), ectopy=0.0, artefacts=0.0)
    after = _drawn("VT", seed, short)[:, TIME > 2.5]
    own, wide = _drawn("NSR", seed, LASTING), _drawn("VT", seed, LASTING)
    # a ventricular beat is broad and tall; over a whole beat, its power is close to that of sinus rhythm
    strength = {
        name: float(np.square(drawn).mean()) for name, drawn in (("own", own), ("wide", wide), ("after", after))
    }
    assert abs(np.log(strength["after"] / strength["own"])) < abs(np.log(strength["after"] / strength["wide"]))


@pytest.mark.parametrize("seed", range(4))
def test_ectopic_beats_are_early_and_leave_the_rest_where_it_was(seed: int) -> None:
    some = Difficulty(short_episodes={}, episode_end=(0.0, 1.0), ectopy=0.8, artefacts=0.0)
    plain, changed = _drawn("NSR", seed, LASTING), _drawn("NSR", seed, some)
    differs = np.abs(changed - plain).max(0) > 1e-3
    # the beat and its moved wave take a part of the frame; the beats before and after are untouched
    assert differs.mean() < 0.9
    again = _drawn("NSR", seed, some)
    np.testing.assert_array_equal(changed, again)
