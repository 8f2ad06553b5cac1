#!/usr/bin/env bash
# scipy 1.17.1: a MATLAB string, table or date of a file of version 7 is read under the name "None".
#
# Guess: scipy.io.loadmat gives the variable by its name, with a value that says it cannot be read, or a warning;
#        whosmat lists it.
# Seen:  the variable's name is the text "None", without a warning. Of several only the last is returned. whosmat raises
#        TypeError, so that the names of the other variables cannot be listed. The files are those that MATLAB wrote for
#        the tests of pymatreader.
# Means: code that looks for "my_string" finds no such variable, and a file with one string cannot be listed.
#
# Output seen:
#   string_v7.mat: None, my_char; warnings: 0
#   two dates: None; warnings: 1
#   whosmat: TypeError: 'NoneType' object is not iterable
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q scipy==1.17.1
env/bin/pip download -q pymatreader==1.3.2 --no-deps --no-binary pymatreader
tar xzf pymatreader-1.3.2.tar.gz
env/bin/python - <<'PYTHON'
import warnings
from pathlib import Path

from scipy.io import loadmat, whosmat

data = Path("pymatreader-1.3.2/tests/test_data")


def seen(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        names = sorted(name for name in loadmat(data / name) if not name.startswith("__"))
    return names, len(caught)


names, count = seen("string_v7.mat")
print(f"string_v7.mat: {', '.join(names)}; warnings: {count}")
assert (names, count) == (["None", "my_char"], 0)
names, count = seen("compare_datetime_with_and_without_time_zone_v7p0.mat")
print(f"two dates: {', '.join(names)}; warnings: {count}")
assert (names, count) == (["None"], 1)
try:
    whosmat(data / "string_v7.mat")
except TypeError as error:
    print(f"whosmat: TypeError: {error}")
else:
    raise SystemExit("whosmat lists the file")
PYTHON
