#!/usr/bin/env bash
# hdf5storage 0.2.2: a numpy array of strings is one single string for MATLAB and each other reader.
#
# Guess: savemat writes np.array(["AF", "SR", "VT"]) as scipy.io.savemat does, as a matrix of three rows of characters, or
#        as a cell of three strings, which it writes for a list.
# Seen:  it writes one row of characters: three labels are the text "AFSRVT", and labels of unequal length have NUL
#        characters between them. With its own metadata, which it writes by default and MATLAB ignores, hdf5storage
#        itself returns three strings, so a look at the file with the same library shows nothing. There is no warning.
# Means: labels of all recordings are one label for another program. Pass labels.tolist().
#
# Output seen:
#   scipy, version 5: ['AF', 'SR', 'VTACH']
#   hdf5storage: ['AF', 'SR', 'VTACH']
#   pymatreader: 'AF\x00\x00\x00SR\x00\x00\x00VTACH'
#   mat73: 'AF\x00\x00\x00SR\x00\x00\x00VTACH'
#   pymatreader, of a list: ['AF', 'SR', 'VTACH']
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q hdf5storage==0.2.2 pymatreader==1.3.2 mat73==0.65 h5py==3.16.0 scipy==1.17.1 numpy==2.4.6
env/bin/python - <<'PYTHON'
import warnings

import hdf5storage
import mat73
import numpy as np
import pymatreader
import scipy.io

warnings.simplefilter("error", UserWarning)
labels = np.array(["AF", "SR", "VTACH"])
hdf5storage.savemat("array.mat", {"labels": labels})
hdf5storage.savemat("list.mat", {"labels": labels.tolist()})
scipy.io.savemat("scipy.mat", {"labels": labels})
rows = [str(row).rstrip() for row in scipy.io.loadmat("scipy.mat")["labels"]]
itself = hdf5storage.loadmat("array.mat")["labels"].tolist()
matreader = pymatreader.read_mat("array.mat")["labels"]
other = mat73.loadmat("array.mat")["labels"]
cell = pymatreader.read_mat("list.mat")["labels"]
print(f"scipy, version 5: {rows}")
print(f"hdf5storage: {itself}")
print(f"pymatreader: {str(matreader)!r}")
print(f"mat73: {str(other)!r}")
print(f"pymatreader, of a list: {[str(label) for label in cell]}")
assert rows == itself == [str(label) for label in cell] == labels.tolist()
assert str(matreader) == str(other) == "AF\0\0\0SR\0\0\0VTACH", "this has changed"
PYTHON
