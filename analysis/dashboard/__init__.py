"""The dashboard: web pages that follow a store, also while a sweep runs elsewhere.

`snapshot` follows the store; `overview` and `runs` compute what pages show, and `drawings` draws the open
section of the report in the background. `app` answers requests, and `server` controls access.
"""
