"""`combine`: several data sets as one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, waves, write_wfdb

X = waves(12, 2, 400, seed=9)
A = "Recordings(x[:6], 100, ('I', 'II'), 'mV', [0, 1] * 3, ('N', 'AFIB'), ['p', 'q', 'r', 's', 't', 'u'])"
B = "Recordings.from_wfdb(root / 'w', '#Dx', patient='#Who', resample_to=None)"

READ = (
    "Recordings.from_folder(root / 'w', '*.hea', read=lambda file: Recording(np.load(root / 'x.npy')[0]), "
    "table=pd.DataFrame({'name': [f'r{n}' for n in range(6)], 'label': ['N', 'AFIB'] * 3, 'patient': [*'vwxyza']}), "
    "name='name', label='label', patient='patient', channels=['I', 'II'], units='mV', sampling_rate=100)"
)


def _frames(tmp_path: Path, a: str = A, b: str = B, more: str = ", classes=MAP") -> FrameSet:
    np.save(tmp_path / "x.npy", X)
    for number, signal in enumerate(X[6:]):
        comments = [f"Dx: {('N', 'AF')[number % 2]}", f"Who: w{number}"]
        write_wfdb(tmp_path / "w", f"r{number}", np.rint(1e3 * signal[::-1]), 100, ("II", "I"), "uV", comments, 1.0)
    declare(
        tmp_path / "space.py",
        "import pandas as pd\nfrom clops_sweep import combine\nMAP = {'N': 'normal', 'AFIB': 'AF', 'AF': 'AF'}\n"
        "@dataset('own', files=['x.npy', 'w'], scenarios=('domain_il',))\ndef own(root):\n"
        f"    x = np.load(root / 'x.npy')\n    return combine({{'a': {a}, 'b': {b}}}{more})\n",
    )
    prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1)
    return open_frames("own", prepared_root=tmp_path / "prepared", leads="all")


def test_two_hospitals_have_common_classes_channels_and_units(tmp_path: Path) -> None:
    frames = _frames(tmp_path)
    assert (frames.classes, frames.lead_names, frames.unit) == (("normal", "AF"), ("I", "II"), "mV")
    np.testing.assert_allclose(frames.signal(np.arange(12)), X, atol=6e-4)  # whole microvolts
    assert frames.labels.tolist() == [0, 1] * 6
    codes, names = frames.domains["source"]
    assert [names[code] for code in codes] == ["a"] * 6 + ["b"] * 6


@pytest.mark.parametrize(
    ("a", "b", "more", "sentence"),
    [
        (A, A.replace("'p'", "'P'").replace("'q', 'r', 's', 't', 'u'", "*'QRSTU'"), "", "holds the same samples as"),
        (A, B, ", classes={'N': 'N', 'AFIB': 'AF'}", "combine: class 'AF' is not in 'b', or not in classes"),
        (A, READ, "", "the files of 'b' are read with read=... when frames are prepared, also with a table"),
        (A.replace("'mV'", "'g'"), B, ", classes=MAP", "combine: 'b' has uV, not g"),
        (A.replace("('I', 'II')", "('V1', 'V2')"), B, ", classes=MAP", "combine: 'a' has other channels"),
        (A.replace("['p'", "window_seconds=2, patients=['p'"), B, ", classes=MAP", "window_seconds differs"),
        (A.replace("100,", "200,"), B, ", classes=MAP", "sampling_rate: recording 'b/r0' has 100 samples a second"),
        (A, B, ", classes=MAP, channels=['I', 'V1']", "combine: channel 'V1' is not in 'a'"),
    ],
)
def test_data_sets_that_do_not_fit(a: str, b: str, more: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        _frames(tmp_path, a, b, more)
