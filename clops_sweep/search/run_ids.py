"""Migration of run ids in the studies of a store."""

from __future__ import annotations

import json
from collections.abc import Mapping

import sqlalchemy

from clops_sweep.search.records import studies_file
from clops_sweep.search.storage import existing_storage
from clops_sweep.search.study import RUN_IDS
from clops_sweep.store.run_store import RunStore


def rename_runs(store: RunStore, new_ids: Mapping[str, str]) -> None:
    """Replace run ids in the trials of all studies of a store, in one transaction.

    Optuna cannot change a trial that has ended, so this writes to its database. Studies in a database named by
    `OptunaSearch(storage=...)` keep the old ids.

    Args:
        store: the store.
        new_ids: old id to new id.

    Raises:
        UsageError: the database cannot be used.
    """
    file = studies_file(store)
    if file is None or not new_ids:
        return
    with existing_storage(f"sqlite:///{file}") as storage:
        if storage is None:
            return
        attributes = sqlalchemy.table(
            "trial_user_attributes",
            sqlalchemy.column("trial_user_attribute_id"),
            sqlalchemy.column("key"),
            sqlalchemy.column("value_json"),
        )
        key = attributes.c.trial_user_attribute_id
        with storage.engine.begin() as connection:
            found = sqlalchemy.select(key, attributes.c.value_json).where(attributes.c.key == RUN_IDS)
            for row, text in connection.execute(found).all():
                renamed = json.dumps([new_ids.get(run_id, run_id) for run_id in json.loads(text)])
                if renamed != text:
                    connection.execute(attributes.update().where(key == row).values(value_json=renamed))
