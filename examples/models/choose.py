"""Which scikit-learn model? Accurate to within 2 %, then quick to predict, then small.

python choose.py [--storage FILE] [--workers N]. Every model is measured on the same splits of the digits
data, so that what makes a split hard cancels in the differences.
"""

import argparse
import os
import pickle
import time
from functools import cache

os.environ.setdefault("OMP_NUM_THREADS", "1")  # latency is that of one thread

from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import lexbandits as lb

MODELS = {
    "naive Bayes": GaussianNB(),
    "linear discriminant": LinearDiscriminantAnalysis(),
    "tree": DecisionTreeClassifier(random_state=0),
    "forest of 20": RandomForestClassifier(20, random_state=0),
    "3 neighbours": KNeighborsClassifier(3),
    "support vectors": SVC(C=10),
}
IMAGES, DIGITS = load_digits(return_X_y=True)


@cache
def size(model: BaseEstimator) -> float:
    """Kilobytes of the model trained on everything: the one that would be shipped."""
    return len(pickle.dumps(clone(model).fit(IMAGES, DIGITS))) / 1000


def measure(model: BaseEstimator, item: int) -> dict[str, float]:
    """Train on one split, predict the rest of it."""
    train, test, train_digits, digits = train_test_split(IMAGES, DIGITS, test_size=0.5, random_state=item)
    trained = clone(model).fit(train, train_digits)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        guesses = trained.predict(test)
        times.append(time.perf_counter() - start)
    return {
        "accuracy": float((guesses == digits).mean()),
        "latency": 1e6 * min(times) / len(test),
        "size": size(model),
    }


def main() -> None:
    """Make or open the study, measure until there is an answer, say why."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--storage", default="models.db")
    arguments.add_argument("--workers", type=int, default=1)
    arguments.add_argument("--margin", default="2%", help="of accuracy")
    given = arguments.parse_args()
    study = lb.create_study(
        "models",
        given.storage,
        load_if_exists=True,
        arms=MODELS,
        objectives=[
            # no model in question is right less than half the time; the narrower, the fewer splits it takes
            lb.Objective("accuracy", margin=given.margin, reference=1, noise=("bounded", 0.5, 1)),
            lb.Objective("latency", "minimize", unit="µs", margin=20, noise="gaussian"),
            lb.Objective("size", "minimize", unit="kB", noise="exact"),
        ],
        delta=0.05,
    )
    answer = study.run(measure, workers=given.workers)
    table = study.results().pivot(index="arm", columns="objective", values="mean").loc[list(MODELS)]
    print(table[["accuracy", "latency", "size"]].round(3).to_string())
    print(f"\n{answer.arm}: {answer.reason}, after {study.status.results} results")
    for row in answer.certificate:
        seen = f"beaten by {row['by']!r}" if row["by"] else row["verdict"]
        print(f"  {row['objective']} against {row['rival']}: {row['difference']:.3g} ({seen})")


if __name__ == "__main__":
    main()
