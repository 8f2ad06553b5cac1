#!/usr/bin/env bash
# heartpy 1.2.7: each call of process_rr overwrites the results of the calls before, which share one dictionary.
#
# Guess: process_rr(rr) returns the measures of rr in a dictionary of its own, as process(signal, rate) does.
# Seen:  all calls return the same two dictionaries, defaults of the function, so a list of the measures of three people
#        has those of the last person three times. With clean_rr=True the list of intervals to leave out is taken from a
#        call before, if any used threshold_rr: intervals of one person are removed where another had artefacts. Without
#        such a call it raises a KeyError. There is no warning.
# Means: a table of people has the values of one person in all rows. Copy the dictionaries, or pass
#        measures={}, working_data={} in each call.
#
# Output seen:
#   three people, beats a minute: [100, 100, 100]; with dictionaries of their own: [60, 75, 100]
#   process, two signals, beats a minute: [75, 101]
#   clean_rr=True, first call: KeyError
#   clean_rr=True, after another person with 2 artefacts: 2 intervals of 30 removed; with own dictionaries: KeyError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q heartpy==1.2.7 numpy==2.4.6 scipy==1.17.1 setuptools==68.2.2
env/bin/python -W ignore - <<'PYTHON'
import heartpy
import numpy as np

random = np.random.default_rng(0)
PEOPLE = [mean + 5 * random.standard_normal(30) for mean in (1000.0, 800.0, 600.0)]


def pulses(mean):
    beats = np.cumsum(mean + 0.03 * random.standard_normal(60))
    seconds = np.arange(0, beats[-1] + 0.5, 0.01)
    return 500 + 500 * sum(np.exp(-(((seconds - beat) / 0.05) ** 2)) for beat in beats)


def removed(intervals, **dictionaries):
    try:
        found, _ = heartpy.process_rr(intervals, clean_rr=True, **dictionaries)
    except KeyError as error:
        return type(error).__name__
    return f"{sum(found['RR_masklist'])} intervals of {len(intervals)} removed"


def rates(rows):
    return [round(float(row["bpm"])) for row in rows]


first = removed(PEOPLE[0])
shared = rates([heartpy.process_rr(rr)[1] for rr in PEOPLE])
own = rates([heartpy.process_rr(rr, measures={}, working_data={})[1] for rr in PEOPLE])
print(f"three people, beats a minute: {shared}; with dictionaries of their own: {own}")
assert (shared, own) == ([100, 100, 100], [60, 75, 100]), "this has changed"
signals = rates([heartpy.process(pulses(mean), 100.0)[1] for mean in (0.8, 0.6)])
print(f"process, two signals, beats a minute: {signals}")
assert signals[0] < signals[1]
print(f"clean_rr=True, first call: {first}")
artefacts = PEOPLE[1].copy()
artefacts[[10, 20]] = 1500
heartpy.process_rr(artefacts, threshold_rr=True)
after = removed(PEOPLE[0])
separate = removed(PEOPLE[0], measures={}, working_data={})
print(f"clean_rr=True, after another person with 2 artefacts: {after}; with own dictionaries: {separate}")
assert (first, separate) == ("KeyError", "KeyError"), "this has changed"
assert after == "2 intervals of 30 removed", "this has changed"
PYTHON
