"""Networks of braindecode against `small_cnn`: five methods on three groups of new people, in epochs and online.

clops-sweep claims docs/braindecode/space.py --seal    # before the first run
clops-sweep docs/braindecode/space.py --data-root DIR
clops-sweep claims docs/braindecode/space.py

Two data sets of twelve leads: the first 500 records of PTB-XL (466 people), and generated ECG. EEGNet is also trained
with a momentum of batch norm of 0.1 instead of braindecode's 0.01.
"""

from clops_sweep import Claim, Contrast, RunConfig, SearchSpace, Side

DATA = {"PTB-XL": "ptbxl", "Synthetic": "synthetic"}
METHODS = ("finetune", "er", "ewc", "clops", "joint")
ONLINE = ("finetune", "er", "clops")
NETWORKS = {
    "small_cnn": {"network": "small_cnn"},
    "EEGNet": {"network": "braindecode:EEGNet"},
    "EEGNet, momentum 0.1": {"network": "braindecode:EEGNet", "EEGNet_batch_norm_momentum": 0.1},
    "ShallowFBCSPNet": {"network": "braindecode:ShallowFBCSPNet"},
    "Deep4Net": {"network": "braindecode:Deep4Net"},
}
PEOPLE = {"ptbxl": 100, "synthetic": 12}
"""People per task: three tasks."""


def space(dataset, methods, **settings):
    base = RunConfig(
        scenario="subject_il",
        dataset=dataset,
        leads="all",
        normalize="zscore",
        people_per_task=PEOPLE[dataset],
        batch_size=16,
        memory_fraction=0.1,
        storage_fraction=0.1,
        mc_samples=5,
        **settings,
    )
    kind = base.stream if base.stream == "online" else "epochs"
    axes = {"net": NETWORKS, "strategy": methods, "split_seed": range(3)}
    return SearchSpace(f"braindecode_{dataset}_{kind}", base, axes, seeds=range(1))


SPACE = [
    *(space(dataset, METHODS, epochs_per_task=3) for dataset in DATA.values()),
    *(space(dataset, ONLINE, stream="online", steps_per_batch=2) for dataset in DATA.values()),
]


def claims(label, dataset):
    def side(words, network, strategy, stream="epochs"):
        settings = {"dataset": dataset, "stream": stream, "strategy": strategy}
        return Side(words, settings | NETWORKS[network])

    def claim(key, sentence, ours, theirs, **others):
        contrast = Contrast(ours, theirs, "test_accuracy")
        return Claim(f"{dataset}_{key}", f"{label}: {sentence}", contrast, matters=0.05, **others)

    for network in NETWORKS:
        name = network.replace(", ", "_").replace(" ", "_").replace(".", "")
        er, tuned = (side(strategy, network, strategy) for strategy in ("er", "finetune"))
        yield claim(f"er_{name}", f"with {network}, ER is above fine-tuning", er, tuned)
        er, tuned = (side(f"{strategy} online", network, strategy, "online") for strategy in ("er", "finetune"))
        yield claim(f"online_er_{name}", f"online with {network}, ER is above fine-tuning", er, tuned)
    small, eegnet, quick = (side(network, network, "er") for network in tuple(NETWORKS)[:3])
    yield claim("eegnet", "with ER, EEGNet is above small_cnn", eegnet, small)
    yield claim("momentum", "with ER, a momentum of 0.1 raises EEGNet above its default of 0.01", quick, eegnet)
    joint = side("joint", "small_cnn", "joint")
    yield claim("joint", "with small_cnn, joint training is above ER", joint, small)


CLAIMS = [claim for label, dataset in DATA.items() for claim in claims(label, dataset)]
