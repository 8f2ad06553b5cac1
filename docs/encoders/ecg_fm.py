"""ECG-FM (https://arxiv.org/abs/2408.05178): 12 leads, 5 s, 500 Hz, each lead scaled to mean 0 and deviation 1.

`fairseq_signals` is https://github.com/Jwoo5/fairseq-signals, and the weights are from
https://huggingface.co/wanglab/ecg-fm: a pickle, which the authors' function opens, so trust it or leave it.
"""

import torch
from fairseq_signals.models import build_model_from_checkpoint

from clops_sweep import encoder

LEADS = ["I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6"]


class Tokens(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, signals):
        return self.model.extract_features(source=signals, padding_mask=None)["x"].mean(1)


@encoder("ecg_fm", weights="mimic_iv_ecg_physionet_pretrained.pt", channels=LEADS, sampling_rate=500, samples=2500,
         adapt=["select", "resample", "crop"], normalize="zscore", trained_on=["cinc2021"])  # fmt: skip
def ecg_fm(weights):
    return Tokens(build_model_from_checkpoint(checkpoint_path=str(weights)))
