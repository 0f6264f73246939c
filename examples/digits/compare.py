"""Which of eight scikit-learn models reads these 1,797 digits? Accurate first, then quick, then small.

python compare.py [--storage FILE]. The study is that of study.toml, whose items are the images; every image
is read by models that were trained without it. It ends long before all 14,376 readings are made.
python compare.py --read ARM IMAGE DIGIT makes one reading: the command that `lexbandits run` can start.
"""

import argparse
import json
import os
import pickle
import time
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # latency is that of one thread

from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import lexbandits as lb

MODELS = {
    "ridge": RidgeClassifier(),
    "naive Bayes": GaussianNB(),
    "tree": DecisionTreeClassifier(random_state=0),
    "linear": LinearDiscriminantAnalysis(),
    "logistic": LogisticRegression(max_iter=5000),
    "forest": RandomForestClassifier(20, random_state=0),
    "neighbours": KNeighborsClassifier(3),
    "vectors": SVC(C=10),
}
FOLDS = 5
LONGEST = 4.0  # milliseconds: a reading that is interrupted counts as so long
IMAGES, DIGITS = load_digits(return_X_y=True)


@cache
def trained(name: str, fold: int) -> Any:
    """A model that has not seen the images of a fold: every fifth."""
    others = [i for i in range(len(DIGITS)) if i % FOLDS != fold]
    return clone(MODELS[name]).fit(IMAGES[others], DIGITS[others])


@cache
def size(name: str) -> float:
    """Kilobytes of the model trained on everything: the one that would be shipped."""
    return len(pickle.dumps(clone(MODELS[name]).fit(IMAGES, DIGITS))) / 1000


def measure(arm: str, item: dict[str, Any]) -> dict[str, float]:
    """Read one image; `item` is a row of images.csv."""
    image = int(item["id"])
    model, times = trained(arm, image % FOLDS), []
    for _ in range(3):
        start = time.perf_counter()
        digit = model.predict(IMAGES[image : image + 1])[0]
        times.append(1000 * (time.perf_counter() - start))
    return {
        "correct": int(digit == int(item["digit"])),
        "latency": min(*times, LONGEST),
        "size": size(arm),
    }


def main() -> None:
    """Make or open the study, measure until there is an answer, say why."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--storage", default="digits.db")
    arguments.add_argument("--read", nargs=3, metavar=("ARM", "IMAGE", "DIGIT"))
    given = arguments.parse_args()
    if given.read:
        arm, image, digit = given.read
        print(json.dumps(measure(arm, {"id": image, "digit": digit})))
        return
    study = lb.study_from_toml(Path(__file__).with_name("study.toml"), given.storage)
    answer = study.run(measure)
    print(f"{answer.arm}: {answer.reason}")
    for row in answer.certificate:
        seen = f"beaten by {row['by']!r}" if row["by"] else row["verdict"]
        print(f"  {row['objective']} against {row['rival']}: {row['difference']:.3g} ({seen})")


if __name__ == "__main__":
    main()
