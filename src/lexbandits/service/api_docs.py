"""`/docs`: the API described for people, made from its OpenAPI document; nothing is loaded from elsewhere."""

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup, escape

HEAD = Markup(
    '<!doctype html><html lang="en"><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width">'
    '<title>lexbandits: API</title><link rel="stylesheet" href="/style.css">'
    "<style>main{{max-width:60rem;margin:2rem auto;padding:0 1rem}}"
    "h2{{font-size:1.05rem;margin-top:2rem}}"
    "code{{overflow-wrap:anywhere}}"
    "td,th{{text-align:left;padding:.15rem 1rem .15rem 0;vertical-align:top}}</style>"
    "<main><h1>{title} {version}</h1><p>{description}</p><p>Every request but <code>/healthz</code> carries "
    "<code>Authorization: Bearer lb_…</code>. For programs: <a href=/openapi.json>openapi.json</a>.</p>"
)


def manual_of(schema: dict[str, Any]) -> str:
    """The whole page."""
    page = [HEAD.format(**{"description": "", **schema["info"]})]
    for path, ways in schema["paths"].items():
        for method, told in ways.items():
            page.append(Markup("<h2><code>{} {}</code></h2><p>{}</p>").format(
                method.upper(), path, told.get("description") or told.get("summary", "")
            ))  # fmt: skip
            page.append(_table("sent", [*_parameters(told), *_fields(schema, told.get("requestBody"))]))
            page.append(_table("answered", _answers(schema, told["responses"])))
    return str(Markup("").join([*page, Markup("</main></html>")]))


def _table(head: str, rows: list[tuple[str, str, str]]) -> Markup:
    if not rows:
        return Markup("")
    cells = (Markup("<tr><td><code>{}</code><td>{}<td>{}</tr>").format(*row) for row in rows)
    return Markup("<table><tr><th>{}<th><th></tr>{}</table>").format(head, Markup("").join(cells))


def _parameters(told: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for one in told.get("parameters", ()):
        needed = ", required" if one.get("required") else ""
        yield one["name"], one["in"] + needed, _shape(one.get("schema", {}))


def _fields(schema: dict[str, Any], content: dict[str, Any] | None) -> Iterator[tuple[str, str, str]]:
    body = (content or {}).get("content", {}).get("application/json", {}).get("schema", {})
    model = schema["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], body)
    for name, shape in model.get("properties", {}).items():
        yield name, "required" if name in model.get("required", ()) else "", _shape(shape)


def _answers(schema: dict[str, Any], responses: dict[str, Any]) -> list[tuple[str, str, str]]:
    rows = []
    for code, told in responses.items():
        names = ", ".join(name for name, _, _ in _fields(schema, told)) if code.startswith("2") else ""
        rows.append((code, told.get("description", ""), names))
    return rows


def _shape(shape: dict[str, Any]) -> str:
    """A type in a few words."""
    if "anyOf" in shape:
        return " or ".join(dict.fromkeys(map(_shape, shape["anyOf"])))
    if "enum" in shape:
        return ", ".join(str(escape(word)) for word in shape["enum"])
    if shape.get("type") == "array":
        return f"list of {_shape(shape.get('items', {}))}"
    return str(shape.get("$ref", "").rpartition("/")[2] or shape.get("type", "anything"))
