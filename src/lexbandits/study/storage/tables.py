"""The tables of studies, in words that SQLite and PostgreSQL share but for those of `Dialect`."""

from collections.abc import Iterator
from typing import NamedTuple


class Dialect(NamedTuple):
    """What a database has words of its own for.

    `id` is a column that numbers rows, none twice: a stale process could write into another study.
    """

    id: str
    blob: str
    keyed: str  # of a table whose rows are kept in the order of their key


OF_STUDY = "study INTEGER NOT NULL REFERENCES lexbandits_studies (id) ON DELETE CASCADE"
SECONDS = "DOUBLE PRECISION"

TABLES = {  # in the order in which they are made
    "version": "schema INTEGER NOT NULL",
    "studies": f"{{id}}, name TEXT NOT NULL UNIQUE, created {SECONDS} NOT NULL, nonce TEXT NOT NULL",
    "events": f"""{OF_STUDY}, seq INTEGER NOT NULL, kind TEXT NOT NULL, trial INTEGER, arm TEXT,
        payload TEXT NOT NULL, at {SECONDS} NOT NULL, "by" TEXT, PRIMARY KEY (study, seq)""",
    # what `verify` compares with: the digest of the journal after each transaction
    "seals": f"{OF_STUDY}, seq INTEGER NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (study, seq)",
    "requests": f"""{OF_STUDY}, request TEXT NOT NULL, first INTEGER NOT NULL, size INTEGER NOT NULL,
        outcome TEXT, PRIMARY KEY (study, request)""",
    "leases": f"""{OF_STUDY}, trial INTEGER NOT NULL, worker TEXT, until {SECONDS} NOT NULL,
        seconds {SECONDS} NOT NULL, PRIMARY KEY (study, trial)""",
    # who was given which arm; beside the journal, as people may ask to be forgotten
    "assigned": f"""{OF_STUDY}, visitor TEXT NOT NULL, arm TEXT NOT NULL, trial INTEGER,
        at {SECONDS} NOT NULL, PRIMARY KEY (study, visitor)""",
    "history": f"{OF_STUDY} PRIMARY KEY, seq INTEGER NOT NULL, blob {{blob}} NOT NULL",
    "tokens": f"""{{id}}, name TEXT NOT NULL, role TEXT NOT NULL, sha256 TEXT NOT NULL UNIQUE,
        created {SECONDS} NOT NULL, last_used {SECONDS}, revoked {SECONDS}""",
}
LATER = {  # made when they are needed
    "delivered": f"{OF_STUDY}, what TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (study, what)",
}
KEYED = ("events", "seals", "requests", "leases", "assigned")
TOLD_ONCE = "CREATE UNIQUE INDEX lexbandits_told_once ON lexbandits_events (study, trial) WHERE kind = 'told'"


def statements(dialect: Dialect, first: str) -> Iterator[str]:
    """What makes a table; with the first of all come all but those made later."""
    for name, columns in ({first: LATER[first]} if first in LATER else TABLES).items():
        columns = columns.replace("{id}", dialect.id).replace("{blob}", dialect.blob)
        yield f"CREATE TABLE lexbandits_{name} ({columns}) {dialect.keyed if name in KEYED else ''}"
    if first not in LATER:
        yield TOLD_ONCE
