"""`python -m clops_sweep` is the command `clops-sweep`."""

from clops_sweep.cli.command import main

main()
