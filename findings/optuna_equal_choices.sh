#!/usr/bin/env bash
# optuna 5.0.0: of choices that are equal in Python, the study stores another one than the objective received.
#
# Guess: suggest_categorical("window", [False, 0, 1]) refuses values that are equal (False == 0), or stores each as it is.
# Seen:  the objective receives all of them. The study looks a value up by equality and stores the first: a third of the
#        trials ran with 0, and the study says False, so that best_params names another run. There is no warning.
# Means: True beside 1 ("all channels" beside "one channel"), or False ("off") beside 0, cannot be told apart afterwards,
#        and the sampler learns from both as one. Use strings as choices.
#
# Output seen (choices, received by the objective, stored):
#   [False, 0, 1]: {'0': 19, '1': 25, 'False': 16}, stored {'1': 25, 'False': 35}
#   [True, 1, '1']: {"'1'": 25, '1': 19, 'True': 16}, stored {"'1'": 25, 'True': 35}
#   strings: {"'0'": 19, "'1'": 25, "'False'": 16}, stored {"'0'": 19, "'1'": 25, "'False'": 16}
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q optuna==5.0.0
env/bin/python - <<'PYTHON'
import warnings
from collections import Counter

import optuna

warnings.simplefilter("error")
optuna.logging.set_verbosity(optuna.logging.ERROR)


def counts(choices):
    received = Counter()

    def objective(trial):
        received[repr(trial.suggest_categorical("window", choices))] += 1
        return 0.0

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=60)
    return dict(sorted(received.items())), dict(sorted(Counter(repr(t.params["window"]) for t in study.trials).items()))


for choices in ([False, 0, 1], [True, 1, "1"]):
    received, stored = counts(choices)
    print(f"{choices}: {received}, stored {stored}")
    assert len(received) == 3 and len(stored) == 2, "this has changed"
received, stored = counts(["False", "0", "1"])
print(f"strings: {received}, stored {stored}")
assert received == stored
PYTHON
