"""The tables of studies, as SQLAlchemy knows them; needed to make them, which happens once."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import registry
from sqlalchemy.schema import CreateIndex, CreateTable

TABLES = sa.MetaData()


def _table(name: str, *columns: sa.Column[Any], **options: Any) -> sa.Table:
    return sa.Table(f"lexbandits_{name}", TABLES, *columns, **options)


def _of_study(**options: Any) -> sa.Column[int]:
    return sa.Column(
        "study", sa.ForeignKey("lexbandits_studies.id", ondelete="CASCADE"), nullable=False, **options
    )


_table("version", sa.Column("schema", sa.Integer, nullable=False))
_table(
    "studies",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("nonce", sa.String(32), nullable=False),
    sqlite_autoincrement=True,  # an id is never used again: a stale process must not write into another study
)
EVENTS = _table(
    "events",
    _of_study(primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("trial", sa.Integer),
    sa.Column("arm", sa.String(200)),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("by", sa.String(200)),
    sqlite_with_rowid=False,
)
_TOLD = sa.text("kind = 'told'")
sa.Index(
    "lexbandits_told_once",
    EVENTS.c.study,
    EVENTS.c.trial,
    unique=True,
    sqlite_where=_TOLD,
    postgresql_where=_TOLD,
)
_table(
    "seals",  # what `verify` compares with: the digest of the journal after each transaction
    _of_study(primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sqlite_with_rowid=False,
)
_table(
    "requests",
    _of_study(primary_key=True),
    sa.Column("request", sa.String(200), primary_key=True),
    sa.Column("first", sa.Integer, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sqlite_with_rowid=False,
)
_table(
    "leases",
    _of_study(primary_key=True),
    sa.Column("trial", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("worker", sa.String(200)),
    sa.Column("until", sa.Double, nullable=False),
    sa.Column("seconds", sa.Double, nullable=False),
    sqlite_with_rowid=False,
)
_table(
    "history",
    _of_study(primary_key=True),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("blob", sa.LargeBinary, nullable=False),
)
_table(
    "tokens",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False, unique=True),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("last_used", sa.Double),
    sa.Column("revoked", sa.Double),
)
DELIVERED = _table(
    "delivered",
    _of_study(primary_key=True),
    sa.Column("what", sa.Text, primary_key=True),
    sa.Column("seq", sa.Integer, nullable=False),
)
LATER = [DELIVERED]  # made when they are needed


def statements(dialect: str, first: str) -> Iterator[str]:
    """What makes a table, or those made with the first, in the words of a database."""
    how, tables = registry.load(dialect)(), [table for table in LATER if table.name == first]
    for table in tables or [table for table in TABLES.sorted_tables if table not in LATER]:
        yield str(CreateTable(table).compile(dialect=how))
        for index in table.indexes:
            yield str(CreateIndex(index).compile(dialect=how))
