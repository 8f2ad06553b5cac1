#!/usr/bin/env bash
# Ray 2.60.0 with Optuna 5.0.0: a trial whose score is NaN stays "running" in the study.
#
# Guess: Optuna records it as failed, as it does when the objective function of study.optimize returns NaN.
# Seen:  OptunaSearch leaves the trial RUNNING for ever, although Tune reports it as finished without an error.
# Means: a count of finished trials, a resumed study and samplers that look at running trials (constant liar) are wrong.
#
# Output seen:
#   Tune: 2 trials, 0 errors
#   study: score 1.0 COMPLETE, score nan RUNNING
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q 'ray[tune]==2.60.0' optuna==5.0.0
cat > study.py <<'PYTHON'
import math
import os

import optuna
import ray
from ray import tune
from ray.tune.search import ConcurrencyLimiter
from ray.tune.search.optuna import OptunaSearch

SCORES = {"score 1.0": 1.0, "score nan": math.nan}


def train(config):
    tune.report({"score": SCORES[config["kind"]]})


ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
storage = optuna.storages.InMemoryStorage()
search = OptunaSearch(
    metric="score",
    mode="max",
    sampler=optuna.samplers.GridSampler({"kind": list(SCORES)}, seed=0),
    storage=storage,
    study_name="study",
)
results = tune.Tuner(
    train,
    param_space={"kind": tune.choice(list(SCORES))},
    tune_config=tune.TuneConfig(search_alg=ConcurrencyLimiter(search, 1), num_samples=2),
    run_config=tune.RunConfig(verbose=0, storage_path=os.path.abspath("tune")),
).fit()
trials = optuna.load_study(study_name="study", storage=storage).trials
states = {trial.params["kind"]: trial.state.name for trial in trials}
print(f"Tune: {len(results)} trials, {results.num_errors} errors")
print("study:", ", ".join(f"{kind} {states[kind]}" for kind in SCORES))
assert (len(results), results.num_errors) == (2, 0)
assert states == {"score 1.0": "COMPLETE", "score nan": "RUNNING"}
PYTHON
env/bin/python -W ignore study.py > seen.txt 2> error.txt || { tail -n 5 error.txt; exit 1; }
grep -E '^(Tune|study):' seen.txt
