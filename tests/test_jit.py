"""Kernels on disk: what one process has compiled is what another finds."""

import pytest

import lexbandits as lb
from lexbandits.jit import INTERPRETED, kernel
from lexbandits.simulation.trajectory import plain_loop
from lexbandits.world.noise import DRAWS

pytestmark = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")


@pytest.mark.parametrize("draw", DRAWS)
def test_the_loop_around_a_policy_and_its_noise_is_kept(draw):
    loop = plain_loop(lb.LexElimIn.rules, draw)
    assert draw.kernel_sources | lb.LexElimIn.rules.observe.kernel_sources <= loop.kernel_sources
    assert loop._cache.cache_path


def test_two_processes_that_compile_at_once_do_not_take_each_others_code(tmp_path, monkeypatch):
    """Each has looked when the other has not written yet; then they write in turns."""
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))

    def double(x):
        return x + x

    one, other = (kernel(double)._cache._cache_file for _ in range(2))
    look, write, late = one._load_index, other._save_data, []
    other._save_data = lambda *words: late.append(words)

    def looks_first():
        seen = look()
        other.save("other's", "other's code")
        return seen

    one._load_index = looks_first
    one.save("one's", "one's code")
    for words in late:
        write(*words)
    one._load_index = look
    assert one.load("one's") == "one's code"
    assert other.load("other's") in ("other's code", None), "or it is compiled again"
    other._save_data = write
    other.save("other's", "other's code")
    assert (one.load("one's"), one.load("other's")) == ("one's code", "other's code")
