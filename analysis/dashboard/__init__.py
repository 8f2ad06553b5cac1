"""The dashboard: web pages that follow a store, also while a sweep runs elsewhere.

`snapshot` follows the store. `overview`, `experiments`, `methods`, `runs`, `run_page` and `compare` compute what pages
show, `charts`, `means_charts` and `curve_charts` their charts, and `drawings` draws the open section of the report in
the background. `app` answers requests, and `server` controls access.
"""
