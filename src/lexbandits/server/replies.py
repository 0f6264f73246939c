"""Answers as JSON that every reader can take: names may hold what UTF-8 cannot."""

import json
from typing import Any

from fastapi.responses import JSONResponse


class Reply(JSONResponse):
    """An answer in ASCII: half a pair of surrogates, as file names may have, is escaped."""

    def render(self, content: Any) -> bytes:
        """As JSON."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
