#!/usr/bin/env bash
# torch 2.13.0: the first operation under a TorchDispatchMode imports the compiler, some 800 modules.
#
# Guess: a TorchDispatchMode, the documented way to see each operation, costs some microseconds an operation.
# Seen:  PyTorch wraps the __torch_dispatch__ in the body of each such class, so that the compiler leaves it alone, and
#        the first call of the wrapper imports torch._dynamo: about two seconds and 800 modules. If the hook
#        is inherited from a base class that is no mode, it is not wrapped, and nothing is imported.
# Means: in a process that runs for a second, such as a test or a worker, the mode triples the time.
#
# Output seen:
#   hook in the class: compiler imported, over 500 new modules
#   hook in a base class: compiler not imported, 0 new modules
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q torch==2.13.0 numpy==2.4.6
cat > mode.py <<'PYTHON'
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Hook:
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


if sys.argv[1] == "class":

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

else:

    class Mode(Hook, TorchDispatchMode):
        pass


before = len(sys.modules)
with Mode():
    torch.ones(2) + 1
new = len(sys.modules) - before
imported = "torch._dynamo" in sys.modules
print("compiler imported" if imported else "compiler not imported", f"{'over 500' if new > 500 else new} new modules", sep=", ")
PYTHON
seen=$(for place in "class" "base class"; do
  article=$([ "$place" = "class" ] && echo the || echo a)
  env/bin/python mode.py "$place" | sed "s/^/hook in $article $place: /"
done)
echo "$seen"
[ "$seen" = "hook in the class: compiler imported, over 500 new modules
hook in a base class: compiler not imported, 0 new modules" ]
