"""HuBERT-ECG (https://doi.org/10.1101/2024.11.14.24317328): 12 leads, 5 s, 100 Hz, filtered, each lead from -1 to 1.

`hubert_ecg` is in the folder `code` of https://github.com/Edoar-do/HuBERT-ECG; model.safetensors and config.json are
from https://huggingface.co/Edoardo-BS/hubert-ecg-base (CC BY-NC 4.0). The authors' filter is a causal FIR filter.
"""

import torch
from hubert_ecg import HuBERTECG

from clops_sweep import encoder

LEADS = ["I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6"]


class Mean(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, signals):  # minmax is from 0 to 1; leads follow each other
        return self.model((2 * signals - 1).flatten(1)).last_hidden_state.mean(1)


@encoder("hubert_ecg", weights="hubert-ecg-base/model.safetensors", channels=LEADS, sampling_rate=100, samples=500,
         adapt=["select", "resample", "crop"], bandpass=(0.05, 47), normalize="minmax",
         trained_on=["cinc2021"])  # fmt: skip
def hubert(weights):
    return Mean(HuBERTECG.from_pretrained(weights.parent))
