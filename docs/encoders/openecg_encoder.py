"""Weights of openecg (Apache-2.0) as an encoder: `pip install --no-deps openecg==0.11.0 opendsp==0.1.0`."""

from pathlib import Path

import openecg
import torch
from openecg.stage2.model_variants import FrameClassifierTransformerSampleResConvTokMH1Ch as Codec

from clops_sweep import RunConfig, SearchSpace, encoder

OPTIONS = ("patch_size", "d_model", "n_heads", "n_layers", "ff", "n_classes", "use_lead_emb", "pos_type")


class Features(torch.nn.Module):
    def __init__(self, codec):
        super().__init__()
        self.codec = codec

    def forward(self, signals):  # [B, 1, 5000], replaced by ranks as in training; 128 features over time
        ranks = torch.stack([torch.from_numpy(openecg.rank_normalize(it.numpy())) for it in signals[:, 0].cpu()])
        found = self.codec(ranks.to(signals.device), None)[0]
        return torch.cat([found.mean(1), found.std(1)], 1)


@encoder("openecg", weights=Path(openecg.__file__).with_name("models") / "codec_v6.pt", channels=1, sampling_rate=500,
         samples=5000, adapt=["resample", "pad", "crop"],
         trained_on=["mitbih", "mitbih_vfdb", "ptbxl", "chapman"])  # fmt: skip
def openecg_codec(weights):
    stored = torch.load(weights, weights_only=True)
    codec = Codec(**{name: stored["model_config"][name] for name in OPTIONS})
    codec.load_state_dict(stored["model_state"])
    codec.head_sample = torch.nn.Identity()
    return Features(codec)


BASE = RunConfig(dataset="synthetic", scenario="class_il_union", encoder="openecg", network="linear")
SPACE = SearchSpace("openecg", BASE, axes={"strategy": ["er", "ncm"]}, seeds=1)
