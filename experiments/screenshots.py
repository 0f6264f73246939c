"""Pictures of what people see: the page of a running study, and the report of a table (docs/images)."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import lexbandits as lb

SIZE = {"width": 1100, "height": 860}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
MODELS = {  # accuracy, seconds, cents: what the README measures
    "small": (0.71, 0.4, 0.1),
    "medium": (0.84, 0.9, 0.4),
    "large": (0.85, 2.1, 1.9),
    "huge": (0.86, 2.6, 2.4),
}


def study_under_way(storage: str, results: int, seed: int) -> None:
    """Measure the README's models for a while, so that something is settled and something is not."""
    study = lb.create_study(
        "models",
        storage,
        arms=list(MODELS),
        objectives=[
            lb.Objective("correct", margin=0.06, noise="bernoulli"),
            lb.Objective("latency", "minimize", unit="s", margin=0.4, noise=("bounded", 0, 10)),
            lb.Objective("cost", "minimize", unit="cents", margin=0.2, noise=("bounded", 0, 3)),
        ],
        seed=seed,
    )
    rng = np.random.default_rng(seed)
    for _ in range(results):
        trial = study.ask()
        right, seconds, cents = MODELS[trial.arm]
        values = {
            "correct": float(rng.random() < right),
            "latency": min(10.0, rng.gamma(25, seconds / 25)),
            "cost": cents * rng.uniform(0.8, 1.2),
        }
        study.tell(trial, values)


def digits_report(path: Path) -> None:
    """Write the report of the README's table."""
    verdict = lb.judge(
        "examples/digits/results.csv",
        [
            lb.Objective("correct", margin=0.02),
            lb.Objective("latency", "minimize", margin=100, unit="µs"),
        ],
        arm="model",
        item="image",
    )
    verdict.report(str(path))


def photograph(browser: Any, addresses: list[str], path: Path) -> None:
    """Save what a browser shows of the last of some addresses once it has a table."""
    page = browser.new_page(viewport=SIZE, device_scale_factor=1.25)
    for address in addresses:
        page.goto(address)
        page.wait_for_load_state("networkidle")
    page.wait_for_selector("table")
    page.screenshot(path=path)
    page.close()
    with Image.open(path) as shot:  # 64 colours are a third of the bytes
        shot.convert("RGB").quantize(64).save(path, optimize=True)


def screenshots(folder: Path, chromium: str, seed: int = 7) -> list[Path]:
    """Write page.png and report.png; Chromium is that of the machine."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "page.png", folder / "report.png"]
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as play:
        storage, report = f"{scratch}/studies.db", Path(scratch) / "report.html"
        study_under_way(storage, results=900, seed=seed)
        digits_report(report)
        command = [sys.executable, "-m", "lexbandits", "serve", "--port", "0", "--storage", storage]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
            assert service.stdout is not None
            try:
                link = service.stdout.readline().strip()  # its token logs the browser in
                browser = play.chromium.launch(executable_path=chromium, args=FLAGS)
                photograph(browser, [link, f"{link.partition('#')[0]}#/study/models"], paths[0])
                photograph(browser, [report.as_uri()], paths[1])
                browser.close()
            finally:
                service.terminate()
    return paths
