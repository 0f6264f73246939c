"""`lexbandits study forecast` speaks of options where Python speaks of arguments."""

import pytest

from support.command import invoked

TOML = """
[study]
name = "t"
arms = ["a", "b+c"]
[[objectives]]
name = "x"
margin = 1
{noise}
"""


@pytest.fixture
def forecast(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prior.toml").write_text('[a]\nx = 0.2\n["b+c"]\nx = 0.9\n')

    def forecast(*options, noise=""):
        (tmp_path / "t.toml").write_text(TOML.format(noise=noise))
        done = invoked("study", "forecast", "t.toml", "--runs", "5", *options)
        return done.exit_code, " ".join(done.output.split())

    return forecast


def test_what_is_missing_is_said_by_its_option(forecast):
    code, text = forecast()
    assert code == 2
    assert "'a' has too few results on 'x' to forecast from: say --prior FILE" in text
    assert "[a] x = …" in text
    code, text = forecast("--prior", "prior.toml")
    assert code == 2
    assert text.endswith("the standard deviation of one value on 'x': say --sd x=…")
    code, text = forecast("--prior", "prior.toml", "--sd", "x=1")
    assert code == 0


def test_the_worst_case_names_the_option_that_spares_it(forecast):
    code, text = forecast("--prior", "prior.toml", noise='noise = ["bounded", 0, 2]')
    assert code == 0
    assert "the worst case. --sd x=… gives a closer forecast." in text
    assert (
        "worst case"
        not in forecast("--prior", "prior.toml", "--sd", "x=0.1", noise='noise = ["bounded", 0, 2]')[1]
    )


def test_names_are_quoted_as_the_file_needs_them(forecast, tmp_path):
    (tmp_path / "prior.toml").write_text("[a]\nx = 0.2\n")
    assert '["b+c"] x = …' in forecast("--prior", "prior.toml")[1]
