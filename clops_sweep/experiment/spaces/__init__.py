"""Search spaces: which runs an experiment asks for.

`space_files` executes a file and returns its search spaces and claims. A `SearchSpace` consists of one of three:

- a `Grid`: a run for each combination of values on its axes (`axes`), and each seed;
- `Trials` of an `OptunaSearch`, whose runs a study determines;
- a `TunedSpace` (`tuning`): for each tuned method a search that chooses, its `Phase`, and then the `ReportedGrid` of
  what they chose.

A `Selection` is search spaces with the options of a command, such as `where`. It is what `planning` gets.
"""
