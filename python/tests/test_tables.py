"""Each library that reads Arrow finds in a table what the table says that it holds."""

import functools
import math

import duckdb
import pandas
import polars
import pyarrow
import pytest
from conftest import THREE, Recorded

import lockstep


@functools.cache
def tables(trace: lockstep.Recording) -> list[lockstep.Table]:
    found = lockstep.replay(trace, "all", by="line", measures=["memory", "divergence", "schedule-hash"])
    return [found.rows, found.lost, found.lanes]


def rows(table: lockstep.Table) -> list[dict]:
    """Its rows as Arrow has them: counts by name are a list of pairs."""

    def of(value: object) -> object:
        return [{"name": n, "count": c} for n, c in value.items()] if isinstance(value, dict) else value

    return [{name: of(value) for name, value in row.items()} for row in table.to_dicts()]


@pytest.mark.parametrize("program", THREE)
def test_pyarrow(recorded: Recorded, program: str) -> None:
    for table in tables(recorded(program)):
        read = pyarrow.table(table)
        read.validate(full=True)
        assert read.to_pylist() == rows(table)
        assert pyarrow.schema(table) == read.schema
        of_fields = {field.name: field.metadata[b"definition"].decode() for field in read.schema}
        assert of_fields == table.definitions and all(of_fields.values())


@pytest.mark.parametrize("program", THREE)
def test_polars(recorded: Recorded, program: str) -> None:
    for table in tables(recorded(program)):
        assert polars.DataFrame(table).to_dicts() == rows(table)


@pytest.mark.parametrize("program", THREE)
def test_pandas(recorded: Recorded, program: str) -> None:
    for table in tables(recorded(program)):
        frame = pandas.DataFrame.from_arrow(table)
        assert list(frame.columns) == table.column_names and len(frame) == len(table)
        for name in table.column_names:
            for read, value in zip(frame[name], rows_of(table, name)):
                if value is None:
                    assert read is None or read is pandas.NA or math.isnan(read), name
                elif isinstance(value, list):
                    assert list(read) == value, name
                else:
                    assert read == value, name


def rows_of(table: lockstep.Table, name: str) -> list:
    return [row[name] for row in rows(table)]


@pytest.mark.parametrize("program", THREE)
def test_duckdb(recorded: Recorded, program: str) -> None:
    # duckdb finds tables by the names of variables.
    for table in tables(recorded(program)):
        found = table
        read = duckdb.sql("select * from found")
        names = [column[0] for column in read.description]
        assert [dict(zip(names, row)) for row in read.fetchall()] == rows(found)
    lost = tables(recorded(program))[1]
    assert len(lost) > 0
    sums = duckdb.sql("select heuristic, sum(parted_slots), sum(lost_slots) from lost group by heuristic").fetchall()
    assert sums and all(parted == lost_in for _, parted, lost_in in sums)


def test_nothing_is_copied(recorded: Recorded) -> None:
    lanes = lockstep.replay(recorded("fft")).lanes
    where = [pyarrow.table(lanes)["thread_instructions"].chunk(0).buffers()[1].address for _ in range(2)]
    assert where[0] == where[1]
    of_polars = polars.DataFrame(lanes)["thread_instructions"].to_numpy(allow_copy=False)
    assert of_polars.__array_interface__["data"][0] == where[0]


def test_arrays_outlive_the_table(recorded: Recorded) -> None:
    found = lockstep.replay(recorded("fft"))
    read, told = pyarrow.table(found.lanes), rows(found.lanes)
    del found
    assert read.to_pylist() == told


def test_columns_and_their_absence(recorded: Recorded) -> None:
    table = lockstep.replay(recorded("fft"), "all").rows
    assert table["fetches"] == [row["fetches"] for row in table.to_dicts()]
    assert len(table) == len(lockstep.heuristics())
    with pytest.raises(KeyError, match="no-such"):
        table["no-such"]
