"""Every built-in method on the CinC Challenge 2017: 4,264 people, a memory of 10 %.

The first task is normal rhythm and atrial fibrillation, the second other rhythms and noise. Outputs stand for positions
in a task (class_il) or for classes (class_il_union). Options are tuned on a patient split that is not reported.
To run only the tuning: --where "split_seed == 10".
"""

from clops_sweep import Recordings, RunConfig, SearchSpace, TuneOn, dataset
from clops_sweep.search_spaces.methods_mitbih import ER_ACE, METHODS, memory, tuned


@dataset(
    "cinc2017",
    scenarios=("class_il",),
    files=["cinc2017"],
    title="AF classification from a short single lead, PhysioNet/CinC Challenge 2017 (Clifford et al., 2017)",
    licence="ODC-BY 1.0",
    source="https://physionet.org/content/challenge-2017/",
)
def cinc2017(data_root):
    """Five seconds of every ten."""
    return Recordings.from_wfdb(
        data_root / "cinc2017",
        table="REFERENCE-v3.csv",  # A00001,N
        label=1,
        classes=("N", "A", "O", "~"),
        window_seconds=5,
        stride_seconds=10,
        resample_to=500,
    )


BASE = RunConfig(dataset="cinc2017", epochs_per_task=10, **memory(0.1))
SCENARIOS = {"class_il": METHODS, "class_il_union": METHODS | ER_ACE}
SPACE = [
    SearchSpace(
        name=f"methods_cinc2017_{scenario}",
        base=BASE.replace(scenario=scenario),
        axes={"split_seed": range(5)},
        search=tuned(methods, TuneOn(splits=(10,))),
        seeds=range(1),
    )
    for scenario, methods in SCENARIOS.items()
]
