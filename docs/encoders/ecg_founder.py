"""ECGFounder (https://arxiv.org/abs/2410.04133): 12 leads, 10 s, 500 Hz, filtered, and scaled over all leads.

`Net1D` is in net1d.py of https://github.com/PKUDigitalHealth/ECGFounder, beside this file, with 12_lead_ECGFounder.pth.
The authors also subtract a running median, which the high-pass filter replaces here.
"""

import torch
from net1d import Net1D

from clops_sweep import encoder

LEADS = ["I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6"]


class Pooled(Net1D):
    def forward(self, x):
        x = (x - x.mean((1, 2), keepdim=True)) / (x.std((1, 2), correction=0, keepdim=True) + 1e-8)
        return super().forward(x)


@encoder("ecg_founder", weights="12_lead_ECGFounder.pth", channels=LEADS, sampling_rate=500, samples=5000,
         adapt=["select", "resample", "pad", "crop"], bandpass=(0.67, 40), notch=50)  # fmt: skip
def ecg_founder(weights):
    module = Pooled(12, 64, 1, [64, 160, 160, 400, 400, 1024, 1024], [2, 2, 2, 3, 3, 4, 4], 16, 2, 16, 150,
                    use_bn=False, use_do=False)  # fmt: skip
    module.load_state_dict(torch.load(weights, weights_only=True)["state_dict"])
    module.dense = torch.nn.Identity()
    return module
