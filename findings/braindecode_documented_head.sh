#!/usr/bin/env bash
# braindecode 1.8.1: the docstring of each model shows return_features=True and reset_head(); few have them.
#
# Guess: `model(x, return_features=True)`, "consistent dict across all models", and `model.reset_head(n_outputs=10)`, which
#        the docstring of each class shows with the name of the class, work for that class.
# Seen:  both paragraphs are pasted into every docstring. Of EEGNet, ShallowFBCSPNet, Deep4Net, ATCNet and EEGConformer,
#        forward() has no such argument and reset_head() raises NotImplementedError.
# Means: to take the features of these models or to replace their head, edit `final_layer` and verify its input.
#
# Output seen:
#   EEGNet: documented True, features TypeError, reset_head NotImplementedError
#   and the same for ShallowFBCSPNet, Deep4Net, ATCNet and EEGConformer
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q braindecode==1.8.1 torch==2.11.0 torchaudio==2.11.0 numpy==2.4.6
cat > look.py <<'PYTHON'
import braindecode.models
import torch


def answer(function):
    try:
        function()
        return "works"
    except Exception as error:
        return type(error).__name__


for name in ("EEGNet", "ShallowFBCSPNet", "Deep4Net", "ATCNet", "EEGConformer"):
    model = getattr(braindecode.models, name)
    documented = "return_features=True" in model.__doc__ and "model.reset_head(n_outputs=10)" in model.__doc__
    made = model(n_chans=22, n_outputs=4, n_times=1000).eval()
    features = answer(lambda made=made: made(torch.zeros(2, 22, 1000), return_features=True))
    head = answer(lambda made=made: made.reset_head(n_outputs=10))
    print(f"{name}: documented {documented}, features {features}, reset_head {head}")
    assert documented and (features, head) == ("TypeError", "NotImplementedError"), "this has changed"
PYTHON
env/bin/python -W ignore look.py
