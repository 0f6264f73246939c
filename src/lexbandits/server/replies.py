"""Answers as JSON that every reader can take: names may hold what UTF-8 cannot."""

import json
from typing import Any

from fastapi.responses import JSONResponse


def encoded(content: Any) -> bytes:
    """JSON in ASCII."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class Reply(JSONResponse):
    """An answer."""

    def render(self, content: Any) -> bytes:
        """Half a pair of surrogates, as file names may have, is escaped instead of an error."""
        return encoded(content)
