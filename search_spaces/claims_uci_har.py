"""Ten claims about class-incremental learning on time series (Qiao et al., KDD 2024), decided on a subset of UCI-HAR.

clops-sweep claims search_spaces/claims_uci_har.py --seal    # before the first run
clops-sweep search_spaces/claims_uci_har.py --data-root DIR
clops-sweep claims search_spaces/claims_uci_har.py

Two norms and five seeds. The data do not identify people, so verdicts are about the publisher's split.
"""

from clops_sweep import Claim, Contrast, SearchSpace, Side
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space

(HEADS,) = load_spaces(shipped_space("heads_uci_har"))  # declares the data set and its network
METHODS = ("finetune", "ewc", "si", "mas", "lwf", "clops", "er", "joint")
SPACE = SearchSpace("claims_uci_har", HEADS.base, {"norm": ["batch", "layer"], "strategy": METHODS}, seeds=range(5))
SIDES = {name: Side(name, {"strategy": name}) for name in METHODS}
ER = SIDES["er"]


def claim(key, sentence, ours, theirs, **others):
    contrast = Contrast(ours, theirs, "test_accuracy")
    return Claim(key, sentence, contrast, matters=0.05, where="Qiao et al., 2024", **others)


CLAIMS = [
    *(
        claim(f"er_above_{name}", f"Replay (ER) is more accurate than {name.upper()}", ER, SIDES[name])
        for name in ("ewc", "si", "mas")
    ),
    claim("er_above_lwf", "Replay (ER) is more accurate than LwF", ER, SIDES["lwf"]),
    *(
        claim(
            f"{name}_forgets",
            f"{name.upper()} is no better than fine-tuning",
            SIDES[name],
            SIDES["finetune"],
            says="same",
        )
        for name in ("ewc", "si", "mas")
    ),
    claim("er_above_clops", "ER is more accurate than CLOPS", ER, SIDES["clops"]),
    claim("joint_above_er", "Joint training is more accurate than ER", SIDES["joint"], ER),
    claim(
        "layer_norm_helps_er",
        "Layer norm raises the accuracy of ER above batch norm",
        ER.but("ER, layer norm", norm="layer"),
        ER.but("ER, batch norm", norm="batch"),
    ),
]
