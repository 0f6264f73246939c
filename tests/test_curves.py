"""Figures of curves: SVG that stands alone, whatever names and numbers are in it."""

import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from lexbandits.curves import BOUND, DARK, LIGHT, Curve, Figure, Panel, _Scale

SVG = "{http://www.w3.org/2000/svg}"
X = np.arange(1.0, 6.0)


def drawn(*curves, **options):
    return ElementTree.fromstring(Figure((Panel(curves, **options),), "A < B")._repr_svg_())


def points(element):
    return [tuple(map(float, point)) for point in re.findall(r"[ML](\S+) (\S+)", element.get("d", ""))]


def lines(figure):
    """The curves without their bands and without the legend."""
    inner = figure.find(f".//{SVG}g/{SVG}svg")
    return [path for path in inner.iter(f"{SVG}path") if path.get("fill") == "none"]


def test_names_are_text_and_nothing_else():
    figure = drawn(Curve('<b>"a" & b</b>', X, X))
    assert figure.find(f"{SVG}title").text == "A < B"
    assert '<b>"a" & b</b>' in [text.text for text in figure.iter(f"{SVG}text")]
    assert not list(figure.iter(f"{SVG}b"))


def test_both_schemes_have_every_colour_and_nothing_comes_from_elsewhere():
    text = Figure((Panel([Curve("a", X, X)]),), "t")._repr_svg_()
    light, dark = text.split("@media (prefers-color-scheme:dark)")
    assert all(colour in light for colour in LIGHT)
    assert all(colour in dark for colour in DARK)
    assert not re.search(r"(href|url\(|@import|<script)", text)


def test_a_curve_goes_where_its_values_say():
    (path,) = lines(drawn(Curve("a", X, 2 * X)))
    places = np.array(points(path))
    assert np.allclose(np.diff(places[:, 0]), 57.5, atol=0.06)
    assert np.allclose(np.diff(places[:, 1]), np.diff(places[:, 1])[0], atol=0.11)
    assert places[0, 1] > places[-1, 1], "up is more"


def test_what_is_no_number_is_left_out():
    y = np.array([1.0, math.nan, 3.0, math.inf, 5.0])
    assert len(points(lines(drawn(Curve("a", X, y)))[0])) == 3
    y = np.array([-1.0, 0.0, 3.0, 4.0, 5.0])
    assert len(points(lines(drawn(Curve("a", X, y), y_scale="log"))[0])) == 3
    empty = drawn(Curve("a", np.empty(0), np.empty(0)))
    assert points(lines(empty)[0]) == []
    flat = drawn(Curve("a", X, np.full(5, 3.0)))
    assert len({y for _, y in points(lines(flat)[0])}) == 1


def test_looks_differ_and_each_name_is_in_the_legend_once():
    curves = [Curve(f"cell {k}", X, X + k, k) for k in range(23)] + [Curve("bound", X, X, BOUND)]
    two = Figure((Panel(curves), Panel(curves)), "t")
    figure = ElementTree.fromstring(two._repr_svg_())
    pens = {(path.get("class"), path.get("stroke-dasharray")) for path in lines(figure)}
    assert len(pens) == 24
    names = [text.text for text in figure.iter(f"{SVG}text")]
    assert all(names.count(curve.name) == 1 for curve in curves)
    height, width = float(figure.get("height")), float(figure.get("width"))
    for text in figure.iter(f"{SVG}text"):
        assert 0 < float(text.get("x")) < width
        assert 0 < float(text.get("y")) < height


@pytest.mark.parametrize(
    ("kind", "ends", "shown"),
    [
        ("linear", (0, 9), ["0", "2", "4", "6", "8"]),
        ("linear", (-0.3, 0.1), ["−0.3", "−0.2", "−0.1", "0.0", "0.1"]),
        ("log", (1, 1e6), ["1", "10", "100", "1,000", "10,000", "10⁵", "10⁶"]),
        ("log", (2, 200), ["3", "10", "30", "100"]),
        ("log", (3000, 21000), ["5,000", "10,000", "20,000"]),
        ("symlog", (-50, 20_000), ["−10", "0", "10", "100", "1,000", "10,000"]),
        ("symlog", (0, 3), ["0"]),
    ],
)
def test_ticks_are_round_numbers_at_their_places(kind, ends, shown):
    scale = _Scale(kind, [np.array(ends, float)], (0.0, 100.0), room=0.0)
    assert [text for text, _ in scale.ticks] == shown
    places = [place for _, place in scale.ticks]
    assert places == sorted(places)
    assert all(-1e-9 <= place <= 100 + 1e-9 for place in places)


@pytest.mark.parametrize("kind", ["linear", "log", "symlog"])
def test_scales_keep_the_order(kind):
    values = np.concatenate([-np.geomspace(1e-2, 1e4, 50)[::-1], [0.0], np.geomspace(1e-2, 1e4, 50)])
    values = values[values > 0] if kind == "log" else values
    assert np.all(np.diff(_Scale(kind, [values], (0.0, 100.0)).of(values)) > 0)


def test_a_figure_is_saved_as_svg_alone(tmp_path):
    figure = Figure((Panel([Curve("a", X, X, band=(X - 1, X + 1), dots=True)], level=2.0),), "t")
    saved = figure.save(tmp_path / "f.svg")
    assert saved.read_bytes() == figure.save(tmp_path / "g.svg").read_bytes()
    with pytest.raises(ValueError, match=r"'f\.png' must end in \.svg"):
        figure.save(tmp_path / "f.png")
