#!/usr/bin/env bash
# hypothesis 6.170.17: with derandomize=True, the examples of a test depend on which other modules are imported.
#
# Guess: derandomize=True derives the examples from the test alone, so it gets the same examples in each process.
# Seen:  numbers that are written in the project's own imported modules are tried as examples. A module that the test
#        does not use, imported by another test file, changes all its examples.
# Means: a property test can pass alone and fail in a larger selection of tests, or the reverse, on unchanged code.
#        Repeat the failing selection, not the failing test.
#
# Output seen:
#   test alone, twice: same examples
#   with a module that the test does not use: other examples, with its constant
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q hypothesis==6.170.17
cat > property.py <<'PYTHON'
from hypothesis import given, settings, strategies

examples = []


@settings(max_examples=200, derandomize=True, database=None)
@given(strategies.integers())
def collect(number):
    examples.append(number)
PYTHON
echo "LIMIT = 987654" > unrelated.py
cat > alone.py <<'PYTHON'
import property

property.collect()
print(property.examples)
PYTHON
(echo "import unrelated"; cat alone.py) > beside.py
env/bin/python alone.py > first
env/bin/python alone.py > second
env/bin/python beside.py > third
seen=$(
  cmp -s first second && echo "test alone, twice: same examples"
  if ! cmp -s first third && grep -qw 987654 third && ! grep -qw 987654 first; then
    echo "with a module that the test does not use: other examples, with its constant"
  fi
)
echo "$seen"
[ "$seen" = "test alone, twice: same examples
with a module that the test does not use: other examples, with its constant" ]
