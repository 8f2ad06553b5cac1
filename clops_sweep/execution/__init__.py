"""Execution of runs: Ray, Tune, workers and the live display.

`launch` checks a request (`fit`), chooses `devices` and how to compute jobs, and returns an `outcome`. The `driver`
takes one feed after another from `feeding/sweep_feeds`: runs, then trials, then the runs that these chose. It hands
jobs to workers as `computing/` describes: this process, or Ray in a `cluster/`. `feeding/relay` passes their `reports`
on to store, display, feed and observers. `worker/` computes jobs.
"""
