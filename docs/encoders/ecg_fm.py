"""ECG-FM (https://arxiv.org/abs/2408.05178): 12 leads, 5 s, 500 Hz, each lead scaled to mean 0 and deviation 1.

The authors' code, https://github.com/Jwoo5/fairseq-signals, needs Python 3.10 and PyTorch 2.5 at most. Write
ecg_fm.onnx there, from the weights of https://huggingface.co/wanglab/ecg-fm (a pickle: trust it or leave it):

    from fairseq_signals.models import build_model_from_checkpoint
    model = build_model_from_checkpoint(checkpoint_path="mimic_iv_ecg_physionet_pretrained.pt").eval()
    model.forward = lambda signals: model.extract_features(source=signals, padding_mask=None)["x"].mean(1)
    torch.onnx.export(model, torch.randn(2, 12, 2500), "ecg_fm.onnx", dynamic_axes={"signals": {0: "n"}},
                      input_names=["signals"])
"""

from clops_sweep import OnnxEncoder, encoder

LEADS = ["I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6"]


@encoder("ecg_fm", weights="ecg_fm.onnx", channels=LEADS, sampling_rate=500, samples=2500,
         adapt=["select", "resample", "crop"], normalize="zscore", trained_on=["cinc2021"])  # fmt: skip
def ecg_fm(weights):
    return OnnxEncoder(weights)
