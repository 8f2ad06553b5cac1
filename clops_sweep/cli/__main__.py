"""`python -m clops_sweep.cli` is the command `clops-sweep`."""

from clops_sweep.cli.command import main

main()
