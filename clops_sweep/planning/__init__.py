"""Which runs are pending, and what they will cost.

A `Request` is what a user wants: a selection of runs, the prepared data and the store. `State.of(request)` reads store
and studies once: the searches with their trials, the choices of tuned spaces and the `Plan`, which says of each
requested run whether it is finished.

To follow a launch, read `request`, `state`, `plan` and `searches`. `State` gets its parts from `named_orders` and
`trained_encoders`, which replace names by positions and by runs, from `curriculum`, which knows the orders by
difficulty, and from `earlier_data`, which decides whose edition of the data is shown. The other modules tell something
about a state or request: `costs`, `changes` of code, `doubts`, `memories`, `task_tables` and the `claim_seal`.
`launched` remembers the search spaces of launches.
"""
