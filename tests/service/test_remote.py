"""storage="http://…": what is left to say of it where tests/study has said it of every storage, http too."""

import multiprocessing
import threading

import pytest

import lexbandits as lb
from lexbandits.service.auth import Tokens, open_lasting
from lexbandits.study.storage import http
from support.questions import create, go_on, measure
from support.receivers import Receiver
from support.services import fast, kept_port


def test_more_than_one_request_takes(service):
    study = create(
        service.link, name="many", objectives=[lb.Objective("correct", margin=0.000002, noise="bernoulli")]
    )
    trials = study.ask_many(2300, request="mine")
    assert [trial.number for trial in trials] == list(range(2300))
    assert study.ask_many(2300, request="mine") == trials
    outcomes = study.tell_many([(trial, {"correct": 1}) for trial in trials])
    assert outcomes == ["counted"] * 2300
    study.close()
    study.set_budget(3000)
    assert len(study.ask_many(1500)) == 700
    assert study.ask_many(1500) == []


def test_the_same_answer_as_on_a_file(service, tmp_path):
    there, here = create(service.link), create(f"{tmp_path}/study.db")
    assert go_on(there) == go_on(here)
    assert there.answer == here.answer
    assert there.results().equals(here.results())
    assert [e.kind for e in there.events()] == [e.kind for e in here.events()]
    at_the_service = lb.open_study("models", service.storage, read_only=True)
    assert there.verify() == at_the_service.verify()
    assert there.policy == here.policy


def test_a_burn_in_sets_the_cap_as_on_a_file(service, tmp_path):
    words = {"arms": ["a", "b"], "seed": 1, "burn_in": {"seconds": {"a": [0.3, 0.41], "b": [0.79]}}}
    words["objectives"] = [lb.Objective("seconds", "minimize", unit="s", margin=0.1, cap="auto")]
    there, here = (lb.create_study("timed", place, **words) for place in (service.link, tmp_path / "s.db"))
    assert there.spec == here.spec == lb.open_study("timed", service.link).spec
    assert there.spec["objectives"][0]["cap"] == 3.2
    ((first,), (same,)) = there.events(), here.events()
    assert first.payload["spec"]["burn_in"] == same.payload["spec"]["burn_in"] == words["burn_in"]
    assert there.status.results == 0
    for study in (there, here):
        while asked := study.ask_many(20, wait=0):  # 50 is above the cap: cut, not refused
            study.tell_many([(trial, {"seconds": {"a": 0.3, "b": 50.0}[trial.arm]}) for trial in asked])
    assert there.answer == here.answer
    assert (there.answer.arm, there.answer.certified) == ("a", True)
    assert there.verify().ok
    assert lb.create_study("timed", service.link, **words, load_if_exists=True).spec == there.spec
    for wrong, said in (
        (None, 'cap="auto" needs burn_in='),
        ({"seconds": {"a": [0.3]}}, "needs values of every arm, 'b' has none"),
        ({"seconds": {"a": [0.0], "b": [0.0]}}, "needs a burn-in with a value above 0"),
    ):
        with pytest.raises(lb.StudyError, match=said):
            lb.create_study("other", service.link, **{**words, "burn_in": wrong})
    with pytest.raises(lb.UnknownStudyError):
        lb.open_study("other", service.link)


def work(link, name):
    lb.open_study(name, link).run(measure, workers=2, progress=False)


@pytest.mark.slow
def test_processes_share_a_study_on_postgres(serve, postgres):
    service = serve(postgres)
    study = create(service.link)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(service.link, "models")) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert study.answer.arm == "large"
    assert study.answer.certified
    assert lb.open_study("models", postgres, read_only=True).verify()


@pytest.mark.slow
def test_a_worker_survives_a_restart_of_the_service(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(http, "PATIENCE", 600.0)
    secret = Tokens(open_lasting(fast(tmp_path))).create("kept", "admin")
    with kept_port() as port:
        service = serve(None, "--port", str(port))
        study = create(f"{service.address}/#token={secret}")
        trial = study.ask()
        service.stop()
        later = threading.Timer(1.0, service.start)
        later.start()
        assert study.tell(trial, measure(trial.arm, trial.item)) == "counted"
        later.join()


def test_a_certificate_that_is_not_trusted_is_said_at_once(certificate, monkeypatch):
    authority, own = certificate
    proxy = Receiver(certificate=own)
    address = proxy.url.removesuffix("/hook")
    monkeypatch.setattr(http, "PATIENCE", 10**6)
    try:
        with pytest.raises(lb.StorageError, match=r"is not trusted: SSL_CERT_FILE may"):
            lb.list_studies(address)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        with pytest.raises(lb.StorageError, match="is no lexbandits service: it answers 501"):
            lb.list_studies(address)
    finally:
        proxy.close()


def test_an_address_that_is_no_service(monkeypatch):
    monkeypatch.setattr("lexbandits.study.storage.http.PATIENCE", 0.2)
    with pytest.raises(lb.StorageError, match="does not answer"):
        lb.open_study("models", "http://127.0.0.1:9")
    with pytest.raises(lb.StorageError):
        lb.open_study("models", "http://")


def test_resume_and_reopen_are_two_things(service):
    study = create(service.link)
    with pytest.raises(lb.ConflictError, match="has not ended"):
        study.reopen("by mistake")
    study.end("enough")
    study.resume()
    assert study.status.state == "finished", "the end stays"
    study.reopen("not enough")
    assert study.status.state == "measuring"
