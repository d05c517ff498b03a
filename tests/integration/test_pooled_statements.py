"""A statement that a connection was about to prepare when something before it failed works the next time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Integer, bindparam, func, literal, select

from grandbo.errors import GrandboError
from grandbo.storage.database import Database, Step
from tests.support.postgres import TestDatabase

_QUOTIENT = select((literal(1) / bindparam("divisor", type_=Integer)).label("quotient"))
_BACKEND = select(func.pg_backend_pid().label("pid"))
_SUM = select((literal(1) + bindparam("term", type_=Integer)).label("total"))


@pytest.fixture
def single(database: TestDatabase) -> Iterator[Database]:
    """A pool of one connection: what one transaction leaves behind, the next one meets."""
    opened = Database(database.service, pool_size=1)
    opened.open()
    opened.wait()
    yield opened
    opened.close()


def _in_a_batch(single: Database, *, divisor: int) -> object:
    steps: list[Step] = [(_QUOTIENT, {"divisor": divisor}), (_SUM, {"term": 1})]
    with single.transaction("writer", uuid4()) as transaction:
        return transaction.batch(steps)[1][0]["total"]


@pytest.mark.parametrize("runs_before", range(4, 8))
@pytest.mark.parametrize("rollbacks_before", [0, 1, 7])
def test_a_batch_that_failed_while_it_was_being_prepared_runs_again(
    single: Database, runs_before: int, rollbacks_before: int
) -> None:
    for _ in range(rollbacks_before):
        with contextlib.suppress(GrandboError), single.transaction("writer", uuid4()):
            raise GrandboError("nothing was asked yet")
    for _ in range(runs_before):
        assert _in_a_batch(single, divisor=1) == 2
    with pytest.raises(Exception, match="division by zero"):
        _in_a_batch(single, divisor=0)
    for _ in range(3):
        assert _in_a_batch(single, divisor=1) == 2


def _backend(single: Database) -> object:
    with single.transaction("writer", uuid4()) as transaction:
        return transaction.execute(_BACKEND)[0]["pid"]


def test_after_a_ctrl_c_the_connection_is_not_given_on(single: Database) -> None:
    """It may be among statements that were sent at once, and the driver stays there."""

    def interrupted() -> Iterator[Step]:
        yield _QUOTIENT, {"divisor": 1}
        raise KeyboardInterrupt

    before = _backend(single)
    with pytest.raises(KeyboardInterrupt), single.transaction("writer", uuid4()) as transaction:
        transaction.batch(interrupted())

    assert _in_a_batch(single, divisor=1) == 2
    assert _backend(single) != before


def _busy() -> None:
    try:
        raise KeyboardInterrupt
    finally:
        raise psycopg.OperationalError("cannot exit pipeline mode while busy")


def test_a_ctrl_c_that_the_driver_fails_over_stays_one(single: Database) -> None:
    """The driver's error then takes its place, and is no database out of reach, which a worker would wait for."""
    with pytest.raises(KeyboardInterrupt), single.transaction("writer", uuid4()):
        _busy()

    assert _in_a_batch(single, divisor=1) == 2
