#!/usr/bin/env bash
# pymatreader 1.3.2: a cell with one MATLAB string is read as six numbers, without a warning.
#
# Guess: in a file of version 7.3 a cell {"AF"} gives None and a warning, as the string "AF" itself does.
# Seen:  the string gives None and two warnings, and so does each string in a cell of two. The cell of one gives an
#        array of six numbers, the reference to the object, without a warning.
# Means: of recordings whose label is a cell of one string, all have the same label, a list of numbers.
#
# Output seen:
#   string "AF": None, 2 warnings
#   cell {"AF", "SR"}: [None, None], 4 warnings
#   cell {"AF"}: [3707764736, 2, 1, 1, 1, 1], 0 warnings
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q pymatreader==1.3.2 h5py==3.16.0 scipy==1.17.1
env/bin/python - <<'PYTHON'
import warnings

import h5py
import numpy as np
from pymatreader import read_mat

# What MATLAB writes for a string: a reference to an object of class "string".
reference = np.array([[0xDD000000, 2, 1, 1, 1, 1]], "u4")


def string(group, name):
    data = group.create_dataset(name, data=reference)
    data.attrs["MATLAB_class"], data.attrs["MATLAB_object_decode"] = np.bytes_(b"string"), np.int32(3)


def cell(file, name, parts):
    data = file.create_dataset(name, shape=(len(parts), 1), dtype=h5py.ref_dtype)
    data[:, 0] = [file[part].ref for part in parts]
    data.attrs["MATLAB_class"] = np.bytes_(b"cell")


with h5py.File("x.mat", "w", userblock_size=512) as file:
    string(file, "text")
    string(file, "#refs#/a")
    string(file, "#refs#/b")
    cell(file, "two", ["#refs#/a", "#refs#/b"])
    cell(file, "one", ["#refs#/a"])
with open("x.mat", "r+b") as file:
    file.write(b"MATLAB 7.3 MAT-file, Platform: PCWIN64".ljust(116) + b"\0" * 8 + b"\x00\x02IM")


def seen(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = read_mat("x.mat", variable_names=[name])[name]
    return value.tolist() if isinstance(value, np.ndarray) else value, len(caught)


for shown, name, expected in (
    ('string "AF"', "text", (None, 2)),
    ('cell {"AF", "SR"}', "two", ([None, None], 4)),
    ('cell {"AF"}', "one", ([3707764736, 2, 1, 1, 1, 1], 0)),
):
    value, count = seen(name)
    print(f"{shown}: {value}, {count} warnings")
    assert (value, count) == expected
PYTHON
