"""The tables of studies, as SQLAlchemy knows them; needed to make them, which happens once."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects import registry
from sqlalchemy.schema import CreateIndex, CreateTable

TABLES = MetaData()

VERSION = Table("lexbandits_version", TABLES, Column("schema", Integer, nullable=False))


def _of_study(**options: Any) -> Column[int]:
    return Column("study", ForeignKey("lexbandits_studies.id", ondelete="CASCADE"), nullable=False, **options)


STUDIES = Table(
    "lexbandits_studies",
    TABLES,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("created", Double, nullable=False),
    Column("nonce", String(32), nullable=False),
    sqlite_autoincrement=True,  # an id is never used again: a stale process must not write into another study
)
EVENTS = Table(
    "lexbandits_events",
    TABLES,
    _of_study(primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(20), nullable=False),
    Column("trial", Integer),
    Column("arm", String(200)),
    Column("payload", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("by", String(200)),
    sqlite_with_rowid=False,
)
_TOLD = text("kind = 'told'")
Index(
    "lexbandits_told_once",
    EVENTS.c.study,
    EVENTS.c.trial,
    unique=True,
    sqlite_where=_TOLD,
    postgresql_where=_TOLD,
)
REQUESTS = Table(
    "lexbandits_requests",
    TABLES,
    _of_study(primary_key=True),
    Column("request", String(200), primary_key=True),
    Column("first", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    sqlite_with_rowid=False,
)
LEASES = Table(
    "lexbandits_leases",
    TABLES,
    _of_study(primary_key=True),
    Column("trial", Integer, primary_key=True, autoincrement=False),
    Column("worker", String(200)),
    Column("until", Double, nullable=False),
    Column("seconds", Double, nullable=False),
    sqlite_with_rowid=False,
)
HISTORY = Table(
    "lexbandits_history",
    TABLES,
    _of_study(primary_key=True),
    Column("seq", Integer, nullable=False),
    Column("blob", LargeBinary, nullable=False),
)
TOKENS = Table(
    "lexbandits_tokens",
    TABLES,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False),
    Column("role", String(20), nullable=False),
    Column("sha256", String(64), nullable=False, unique=True),
    Column("created", Double, nullable=False),
    Column("last_used", Double),
    Column("revoked", Double),
)
DELIVERED = Table(
    "lexbandits_delivered",
    TABLES,
    _of_study(primary_key=True),
    Column("what", Text, primary_key=True),
    Column("seq", Integer, nullable=False),
)
LATER = [DELIVERED]  # made when they are needed


def statements(dialect: str, first: str) -> Iterator[str]:
    """What makes a table, or those made with the first, in the words of a database."""
    how, tables = registry.load(dialect)(), [table for table in LATER if table.name == first]
    for table in tables or [table for table in TABLES.sorted_tables if table not in LATER]:
        yield str(CreateTable(table).compile(dialect=how))
        for index in table.indexes:
            yield str(CreateIndex(index).compile(dialect=how))
