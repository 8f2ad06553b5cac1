#!/usr/bin/env bash
# wfdb 4.3.1: a comment at sample 0 of an annotation file is dropped without a word.
#
# Guess: rdann returns each annotation that wrann wrote. Sleep stages are comments (") with the stage as auxiliary text,
#        as in the MIT-BIH Polysomnographic Database, and the first epoch of a night may begin at sample 0.
# Seen:  rdann takes each comment at sample 0 for a definition, such as "## time resolution: 500", and removes it,
#        whatever its text. A rhythm change (+) with the same text at sample 0 stays.
# Means: the first stage of a night is gone, and its frames have no label.
#
# Output seen:
#   written: [0, 7500, 15000] ['W', '1', '2']
#   read as comments: [7500, 15000] ['1', '2']
#   read as rhythms: [0, 7500, 15000] ['W', '1', '2']
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q wfdb==4.3.1
env/bin/python -W ignore - <<'PYTHON'
import numpy as np
import wfdb

samples, stages = [0, 7500, 15000], ["W", "1", "2"]
print("written:", samples, stages)


def read(symbol, name):
    wfdb.wrann(name, "st", np.array(samples), [symbol] * 3, aux_note=stages)
    annotation = wfdb.rdann(name, "st")
    return annotation.sample.tolist(), annotation.aux_note


comments, rhythms = read('"', "comments"), read("+", "rhythms")
print("read as comments:", *comments)
print("read as rhythms:", *rhythms)
assert comments == ([7500, 15000], ["1", "2"])
assert rhythms == (samples, stages)
PYTHON
