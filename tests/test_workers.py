"""The same numbers whoever did the work: threads, Dask, Ray; and what is said when they are not there."""

import warnings

import pytest

import lexbandits as lb
from lexbandits.simulation import workers
from support.cells import PAPER, cells, lexelim_in, same


def test_threads(reference):
    assert same(lb.sweep(cells(), replications=150, seed=4, n_jobs=2), reference)
    assert same(lb.sweep(cells(), replications=150, seed=4, n_jobs=-1, backend="threads"), reference)


def few():
    return [
        lb.simulation.Cell("in", lexelim_in(), PAPER, 10**6),
        lb.simulation.Cell("long", lexelim_in(), PAPER, 10**8),
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed", "ignore::DeprecationWarning:dask")
def test_a_dask_cluster(tmp_path):
    from distributed import Client, LocalCluster

    alone = lb.sweep(few(), replications=70, seed=4)
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster):
            active = lb.sweep(few(), replications=70, seed=4, backend="dask", out=tmp_path)
        address = f"dask:{cluster.scheduler_address}"
        connected = lb.sweep(few(), replications=70, seed=4, backend=address)
    assert same(active, alone)
    assert same(lb.simulation.Results.load(tmp_path), alone)
    assert same(connected, alone)


@pytest.mark.slow
def test_a_ray_cluster(tmp_path):
    alone = lb.sweep(few(), replications=70, seed=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own, on import and start
        import ray

        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
        try:
            results = lb.sweep(few(), replications=70, seed=4, backend="ray", out=tmp_path)
        finally:
            ray.shutdown()
    assert same(results, alone)
    assert same(lb.simulation.Results.load(tmp_path), alone)
    with pytest.raises(ValueError, match=r"ray\.init"):
        lb.sweep(few(), replications=1, backend="ray")


def test_progress_is_shown(capsys):
    lb.sweep(cells()[:1], replications=3, progress=True)
    assert "3/3 replications" in capsys.readouterr().err


@pytest.mark.parametrize("backend", ["dask", "dask:tcp://localhost:1", "ray"])
def test_a_cluster_that_is_not_installed_names_its_extra(monkeypatch, backend):
    monkeypatch.setattr(workers, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=rf"lexbandits\[{backend[:4].rstrip(':')}\]"):
        lb.sweep(few(), replications=1, backend=backend)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_dask_without_a_client_asks_for_an_address():
    with pytest.raises(ValueError, match="give an address"):
        lb.sweep(few(), replications=1, backend="dask")
