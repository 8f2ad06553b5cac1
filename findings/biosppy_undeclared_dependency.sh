#!/usr/bin/env bash
# biosppy 2.2.4: `pip install biosppy` gives a package that cannot be imported, and that calls itself 2.1.2.
#
# Guess: the installed package imports.
# Seen:  biosppy.signals.ecg needs peakutils, which the package does not declare; with peakutils it imports.
# Means: a project that lists biosppy alone works only where another package brings peakutils.
#
# Output seen:
#   biosppy alone: ModuleNotFoundError: No module named 'peakutils'
#   with peakutils: biosppy imports, and calls itself 2.1.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q biosppy==2.2.4
if env/bin/python -c 'import biosppy' 2> error.txt; then
    echo "biosppy imports"
    exit 1
fi
echo "biosppy alone: $(tail -n 1 error.txt)"
grep -q "No module named 'peakutils'" error.txt
env/bin/pip install -q peakutils==1.3.5
env/bin/python -W ignore -c 'import biosppy; print("with peakutils: biosppy imports, and calls itself", biosppy.__version__)'
