#!/usr/bin/env bash
# hydra-optuna-sweeper 1.2.0 with hydra-core 1.3.2: range(1,5) is 1 to 4 for one sweeper, and 1 to 5 for the other.
#
# Guess: `x=range(1,5)` means what it means to Hydra's own sweeper, and to Python: 1, 2, 3 and 4. range(0,1,0.25) ends
#        at 0.75.
# Seen:  after `hydra/sweeper=optuna` the same override also gives trials with 5, and with 1.0. There is no warning.
#        interval(1,5), whose two ends both belong to it, has another name, and Hydra's own sweeper refuses that one.
# Means: a grid and a search over "the same space" have other spaces; a rate of dropout, a share of labels or a number
#        of layers goes one step too far, and the best trial may be one that the grid did not have.
#
# Output seen (all combinations, and 40 trials of a random sampler):
#   range(1,5): basic [1, 2, 3, 4], optuna [1, 2, 3, 4, 5]
#   range(0,1,0.25): basic [0.0, 0.25, 0.5, 0.75], optuna [0.0, 0.25, 0.5, 0.75, 1.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q hydra-core==1.3.2 hydra-optuna-sweeper==1.2.0 optuna==2.10.1
cat > config.yaml <<'YAML'
x: 1
seen: none
hydra:
  sweep: {dir: out}
YAML
cat > app.py <<'PYTHON'
import hydra


@hydra.main(version_base=None, config_path=".", config_name="config")
def main(config):
    with open(config.seen, "a") as file:
        file.write(f"{config.x}\n")
    return float(config.x)


if __name__ == "__main__":
    main()
PYTHON
for range in "range(1,5)" "range(0,1,0.25)"; do
  rm -f basic.txt optuna.txt
  env/bin/python app.py -m "x=$range" seen="$PWD/basic.txt" > log.txt 2>&1 || { tail -n 5 log.txt; exit 1; }
  env/bin/python -W ignore app.py -m "x=$range" seen="$PWD/optuna.txt" \
    hydra/sweeper=optuna hydra/sweeper/sampler=random hydra.sweeper.sampler.seed=1 \
    hydra.sweeper.n_jobs=1 hydra.sweeper.n_trials=40 > log.txt 2>&1 || { tail -n 5 log.txt; exit 1; }
  env/bin/python - "$range" <<'PYTHON'
import sys

values = {}
for sweeper in ("basic", "optuna"):
    with open(f"{sweeper}.txt") as file:
        values[sweeper] = sorted({float(line) if "." in line else int(line) for line in file})
print(f"{sys.argv[1]}: basic {values['basic']}, optuna {values['optuna']}")
end = float(sys.argv[1].split(",")[1].strip(")"))
assert max(values["basic"]) < end
assert max(values["optuna"]) == end
assert values["optuna"][:-1] == values["basic"]
PYTHON
done
