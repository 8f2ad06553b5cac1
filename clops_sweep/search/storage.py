"""Storage of studies: a SQLite file in the folder of results, or a given database."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import RDBStorage
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from clops_sweep.errors import UsageError, one_line
from clops_sweep.experiment.spaces.optuna_search import OptunaSearch
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.search.records import STUDIES
from clops_sweep.store.locks import held
from clops_sweep.store.run_store import RunStore

_SECONDS_TO_WAIT_FOR_SQLITE = 60


def study_url(space: SearchSpace, store: RunStore) -> str:
    """Return the URL of the database for the study of a search.

    Raises:
        UsageError: results are not in a folder and the search names no database, or the database's URL is invalid.
    """
    if isinstance(space.search, OptunaSearch) and space.search.storage is not None:
        with quiet(space.search.storage):
            parsed = sqlalchemy.engine.make_url(space.search.storage)
        if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").parent.is_dir():
            raise UsageError(f"study database {parsed.database}: there is no folder to put it into; make it first")
        return space.search.storage
    if store.files.folder is None:
        raise UsageError(
            f"search space {space.name!r}: no database can be kept at {store.files.shown}; "
            "expected OptunaSearch(storage=...) with the URL of one"
        )
    if any(character in store.files.root for character in "?%"):
        raise UsageError(
            f"results {store.files.shown}: a folder with ? or % in its path cannot hold a study's database"
        )
    return f"sqlite:///{store.files.folder / STUDIES}"


def place(url: str) -> str:
    """Return the name of a database for messages: the file, or the URL without its password."""
    try:
        parsed = sqlalchemy.engine.make_url(url)
    except SQLAlchemyError:
        return repr(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        return parsed.database
    return parsed.render_as_string(hide_password=True)


@contextlib.contextmanager
def quiet(url: str) -> Iterator[None]:
    """Silence Optuna's log and experimental warnings in the block, and convert its errors.

    Raises:
        UsageError: the database cannot be used.
    """
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            warnings.simplefilter("ignore", SAWarning)
            yield
    except (SQLAlchemyError, StorageInternalError, ImportError) as error:
        raise UsageError(f"study database {place(url)}: {_reason(error)}") from None
    finally:
        optuna.logging.set_verbosity(verbosity)


@contextlib.contextmanager
def reading(url: str) -> Iterator[None]:
    """Convert errors of reading a database, which may be damaged or edited.

    Raises:
        UsageError: the database cannot be used.
    """
    try:
        with quiet(url):
            yield
    except UsageError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError, AssertionError, ArithmeticError) as error:
        raise UsageError(
            f"study database {place(url)}: damaged, or edited ({type(error).__name__}: {one_line(error)}); put back a "
            "copy that Optuna has written, or move it away to begin anew"
        ) from None


def open_storage(url: str) -> RDBStorage:
    """Open the database, creating it if missing.

    Raises:
        UsageError: another version of Optuna created it.
    """
    try:
        return _storage(url)
    except RuntimeError as error:
        raise UsageError(f"study database {place(url)}: {_reason(error)}") from None


@contextlib.contextmanager
def existing_storage(url: str) -> Iterator[RDBStorage | None]:
    """Yield the database if it exists and contains Optuna's tables, else None. Nothing is written.

    Raises:
        UsageError: the database cannot be used, or is damaged.
    """
    with reading(url):
        storage = _storage(url, exists=True) if _is_used(url) else None
        try:
            yield storage
        finally:
            if storage is not None:
                close(storage)


def _is_used(url: str) -> bool:
    parsed = sqlalchemy.engine.make_url(url)
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        return False
    engine = sqlalchemy.create_engine(url)
    try:
        tables = sqlalchemy.inspect(engine)
        return all(tables.has_table(name) for name in ("studies", "version_info", "alembic_version"))
    finally:
        engine.dispose()


def _storage(url: str, exists: bool = False) -> RDBStorage:
    engine: dict[str, Any] = {}
    if sqlalchemy.engine.make_url(url).get_backend_name() == "sqlite":
        engine["connect_args"] = {"timeout": _SECONDS_TO_WAIT_FOR_SQLITE}
    return RDBStorage(
        url.replace("{", "{{").replace("}", "}}"),  # Optuna creates its tables
        engine_kwargs=engine,
        skip_table_creation=exists,
        skip_compatibility_check=exists,
    )


def close(storage: RDBStorage) -> None:
    """Close the database."""
    storage.remove_session()
    storage.engine.dispose()


@contextlib.contextmanager
def only_driver(space: SearchSpace, work_folder: Path) -> Iterator[None]:
    """Lock a search, so that one driver at a time runs it on this machine or on a shared folder of results.

    A driver continues the trials that a dead driver left running. The lock is released when its process ends, however
    it ends.

    Raises:
        UsageError: another driver is running the search.
    """
    with held(work_folder / "locks" / space.name) as alone:
        if alone is False:
            raise UsageError(
                f"search space {space.name!r} is being run by another driver on the same results; "
                "a single one uses its whole cluster"
            )
        yield


def _reason(error: BaseException) -> str:
    """Return the innermost reason on one line: the database's own message, not SQLAlchemy's."""
    cause = error.__cause__ if isinstance(error, StorageInternalError) and error.__cause__ else error
    return one_line(getattr(cause, "orig", None) or cause)
