"""A key that a file lacks: one sentence with the file, the key and the keys that are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from clops_sweep.cli.commands import command
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, forget

h5py = pytest.importorskip("h5py")
scipy_io = pytest.importorskip("scipy.io")

ARRAYS = '    return Recordings(x, 10, ["ECG"], "mV", labels=[0, 1] * 6, classes=("a", "b"))\n'
READ = (
    '    return Recordings.from_folder(data_root, "{}", read={}, classes=("a", "b"), channels=["ECG"], units="mV", '
    "sampling_rate=10)\n"
)
TABLE = 'table=pd.DataFrame({"n": range(12), "l": ["a", "b"] * 6}), name="n", label="l"'
HDF5 = f'    return Recordings.from_hdf5(data_root, "all.h5", {TABLE}, channels=["ECG"], units="mV", sampling_rate=10, '
CASES = {
    "an archive": (
        f'    x = np.load(data_root / "all.npz")["sig"]\n{ARRAYS}',
        "{}/all.npz has no 'sig' (did you mean 'signal'?), but x, signal",
    ),
    "an archive that is closed": (
        f'    with np.load(data_root / "all.npz") as file:\n        x = file["signals"]\n{ARRAYS}',
        "all.npz has no 'signals' (did you mean 'signal'?), but x, signal",
    ),
    "a MAT file": (
        f'    file = scipy.io.loadmat(data_root / "all.mat")\n    x = file["ecg"]\n{ARRAYS}',
        "all.mat has no 'ecg', but x, s",
    ),
    "an HDF5 file": (
        f'    file = h5py.File(data_root / "all.h5")\n    x = file["ecg"][:]\n{ARRAYS}',
        "{}/all.h5 has no 'ecg', but g, y",
    ),
    "a group": (
        f'    file = h5py.File(data_root / "all.h5")\n    x = file["g"]["ecg"][:]\n{ARRAYS}',
        "{}/all.h5 has no 'ecg', but x",
    ),
    "a table": (f'    x = pd.DataFrame({{"a": [1]}})["ecg"]\n{ARRAYS}', "there is no 'ecg', but a"),
    "a dictionary": (f'    names = {{"AF": 1}}\n    x = names["SR"]\n{ARRAYS}', "there is no 'SR', but AF"),
    "two dictionaries": (f'    other = {{"b": 1}}\n    x = {{"a": 1}}["SR"]\n{ARRAYS}', "KeyError in line 9: 'SR'"),
    "each file": (
        READ.format("r*.npz", 'lambda path: Recording(np.load(path)["sig"], "a")'),
        "r0.npz: <lambda>() raises KeyError: there is no 'sig', but x",
    ),
    "from_npz": (
        READ.format("r*.npz", 'lambda path: from_npz(path, "sig")'),
        "r0.npz: has no variable 'sig'; it has x",
    ),
    "from_mat": (
        READ.format("*.mat", 'lambda path: from_mat(path, "sig")'),
        "all.mat: has no variable 'sig'; it has x, s",
    ),
    "a field": (
        READ.format("*.mat", 'lambda path: from_mat(path, "s.sig")'),
        "all.mat: has no variable 's.sig'; 's' has the fields a, b",
    ),
    "no struct": (
        READ.format("*.mat", 'lambda path: from_mat(path, "x.sig")'),
        "all.mat: has no variable 'x.sig'; 'x' is no struct",
    ),
    "from_hdf5": (f'{HDF5}signals="g/ecg")\n', "all.h5: has no dataset 'g/ecg'; it has g/x, y"),
    "names in from_hdf5": (f'{HDF5}signals="g/x", ids="names")\n', "all.h5: has no dataset 'names'; it has g/x, y"),
}


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    forget("own")
    yield
    forget("own")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the functions leave files open
@pytest.mark.parametrize("case", CASES)
def test_a_missing_key_is_named_with_those_that_are_there(case: str, tmp_path: Path) -> None:
    body, expected = CASES[case]
    signals = np.random.default_rng(0).normal(size=(12, 1, 40))
    np.savez(tmp_path / "all.npz", x=signals, signal=signals)
    scipy_io.savemat(tmp_path / "all.mat", {"x": signals[0], "s": {"a": 1.0, "b": 2.0}})
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file["g/x"] = signals
        file["y"] = [0, 1] * 6
    for number in range(2):
        np.savez(tmp_path / f"r{number}.npz", x=signals[number])
    declared = "all.mat" if case == "a MAT file" else "all.npz"
    imports = "import h5py\nimport scipy.io\nfrom clops_sweep import from_mat, from_npz\n"
    declare(tmp_path / "own.py", f'{imports}@dataset("own", files=["{declared}"])\ndef own(data_root):\n{body}')
    words = ["data", "prepare", str(tmp_path / "own.py"), "--data-root", str(tmp_path)]
    done = CliRunner().invoke(command, [*words, "--prepared-root", str(tmp_path / "prepared")])
    assert isinstance(done.exception, UsageError), done.output
    assert expected.format(tmp_path) in str(done.exception)
