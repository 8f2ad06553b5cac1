"""The page on networks of braindecode: a table of all of them, and the study of four.

python docs/braindecode/study.py                       writes docs/results/braindecode.md from the two tables beside it
python docs/braindecode/study.py collect RESULTS ...   copies the finished runs of stores into runs.csv
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from clops_sweep import read

FOLDER = Path(__file__).parent
NETWORKS, RUNS = FOLDER / "networks.csv", FOLDER / "runs.csv"
DOCUMENT = FOLDER.parent / "results" / "braindecode.md"
CLAIMED = FOLDER / "claims.txt"
KEPT = ["dataset", "stream", "network", "strategy", "split_seed", "test_accuracy", "test_auc", "cpu_seconds"]
HEAD = """# Networks of braindecode

`python docs/braindecode/study.py` made this page from `networks.csv`, `runs.csv` and `claims.txt`
beside it.
[Networks of braindecode](../braindecode.md) explains how to name one.

## All networks

`python docs/braindecode/networks.py` tries each network of braindecode 1.8.1 with its default
options on 22 x 1,000 samples at 250 Hz, with four classes and electrodes of the 10-05 system. A step
has 16 instances and is CPU time on a shared machine, next to a bare PyTorch loop over the same module,
taken in turns. The column "demands" are a run that resumes with equal bits, a method written as a `loss`, EWC,
Monte-Carlo dropout and ONNX. Networks of more than a million parameters passed the checks of a
launch and were not trained here. The nightly tests try all networks again and compare the table.

"""
STUDY = """
## A study of four

`docs/braindecode/space.py` trains `small_cnn`, EEGNet, ShallowFBCSPNet and Deep4Net on new people over
time, in three tasks: the first 500 records of PTB-XL (466 people, 12 leads) and the generated ECG of
`synthetic` (12 leads). EEGNet also runs with a momentum of batch norm of 0.1, since braindecode's
0.01 needs hundreds of steps until running statistics are those of the data. Its 26 claims were
sealed before its first run, but after a pilot of eight runs on the same data: ER, the four networks, two
epochs, ten tasks. EEGNet scored low there, which led to the variant with momentum 0.1 and its claims.
An earlier computation of the same space had been stopped after 134 of its 240 runs and had decided no
claim; this page shows a new computation of all 240, with the same claims.

```sh
clops-sweep claims docs/braindecode/space.py --seal --data-root DIR
clops-sweep docs/braindecode/space.py --data-root DIR --no-ray
clops-sweep claims docs/braindecode/space.py --data-root DIR --all
```

All numbers are the mean accuracy on test people, and the range over three patient splits.

**Three patient splits decide one claim of 26.** With Deep4Net on PTB-XL, ER is not above fine-tuning by
the 0.05 that matter, because both have an accuracy near 0 after so few steps. All other intervals are
too wide: differences between splits are as large as those between methods. A study of these claims needs
more patient splits. What one can see, and nothing more:

- `small_cnn` has the highest mean accuracy in 14 of the 16 columns.
- EEGNet is more accurate with the larger momentum of batch norm in 14 of the 16 columns.
- Joint training, the upper bound, is above all other methods with each network on generated ECG. On PTB-XL
  it is so with `small_cnn` and ShallowFBCSPNet only.

"""


def networks() -> str:
    """Return the table of all networks in Markdown."""
    rows = pd.read_csv(NETWORKS, dtype=str, keep_default_na=False)
    lines = ["| network | parameters | computed by | step, ms | loop, ms | demands |", "|---|--:|---|--:|--:|---|"]
    refused = ["| network | refused because |", "|---|---|"]
    demands = ("resumed", "loss", "ewc", "mc", "onnx")
    for row in rows.to_dict("records"):
        if row["refused"]:
            refused.append(f"| {row['model']} | {_cell(row['refused'])} |")
            continue
        unmet = [f"{name}: {_cell(row[name])}" for name in demands if row[name] not in ("", "yes")]
        met = "all" if row["resumed"] and not unmet else "; ".join(unmet)
        of = _cell(row["computed_by"].removeprefix("PyTorch: "))
        lines.append(
            f"| {row['model']} | {int(row['parameters']):,} | {of} | {row['step_ms']} | {row['loop_ms']} | {met} |"
        )
    kernels = sum(row["computed_by"] == "kernels" for row in rows.to_dict("records"))
    first = f"Of {len(rows)} networks, {len(lines) - 2} are accepted; kernels compute {kernels} of these.\n\n"
    return first + "\n".join(lines) + "\n\n" + "\n".join(refused) + "\n"


def _cell(text: str) -> str:
    short = text if len(text) <= 150 else f"{text[:147]}..."
    return short.replace("|", "/").replace("<", "&lt;")


def study() -> str:
    """Return the tables of the study."""
    runs = pd.read_csv(RUNS)
    parts = []
    for (dataset, stream), here in runs.groupby(["dataset", "stream"], sort=False):
        methods = list(dict.fromkeys(here["strategy"]))
        lines = ["| network | " + " | ".join(methods) + " |", "|---|" + "--:|" * len(methods)]
        for network, rows in here.groupby("network", sort=False):
            cells = [_score(rows.loc[rows["strategy"] == method, "test_accuracy"]) for method in methods]
            lines.append(f"| {network} | " + " | ".join(cells) + " |")
        title = f"**{dataset}, {'online' if stream == 'online' else 'epochs'}**"
        parts.append("\n".join([title, "", *lines]))
    seconds = runs["cpu_seconds"].sum() / 60
    said = f"\n\n{len(runs)} runs, {seconds:.0f} minutes of CPU time.\n"
    claims = "\n### Verdicts\n\n" + f"```text\n{CLAIMED.read_text()}```\n"
    return "\n\n".join(parts) + said + claims


def _score(values: pd.Series) -> str:
    if values.empty:
        return ""
    spread = f" [{values.min():.3f}, {values.max():.3f}]" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread} ({len(values)})"


def collect(stores: list[str]) -> None:
    """Copy the finished runs of some stores."""
    runs = pd.concat([read(store, "runs") for store in stores]).query("status == 'finished'")
    runs = runs.drop_duplicates("run_id")
    quick = runs["EEGNet_batch_norm_momentum"] == 0.1
    runs["network"] = runs["network"].str.removeprefix("braindecode:") + quick.map({True: ", momentum 0.1", False: ""})
    order = ["dataset", "stream", "network", "strategy", "split_seed"]
    runs[KEPT].sort_values(order).to_csv(RUNS, index=False, float_format="%.4f", lineterminator="\n")


def page() -> str:
    """Return the page."""
    return HEAD + networks() + STUDY + study()


if __name__ == "__main__":
    if sys.argv[1:2] == ["collect"]:
        collect(sys.argv[2:])
    DOCUMENT.write_text(page(), encoding="utf-8")
