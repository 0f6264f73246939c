"""Four scikit-learn models on 500 handwritten digits that none of them has seen: results.csv, a row each.

python tabulate.py [FILE]. `correct` is 0 or 1, `latency` the microseconds that one prediction took.
"""

import csv
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # latency is that of one thread

from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

MODELS = {
    "tree": DecisionTreeClassifier(random_state=0),
    "linear": LinearDiscriminantAnalysis(),
    "neighbours": KNeighborsClassifier(3),
    "vectors": SVC(C=10),
}
ITEMS = 500


def rows():
    """Every model on every image, the quickest of three times."""
    train, test, known, digits = train_test_split(
        *load_digits(return_X_y=True), test_size=ITEMS, random_state=0
    )
    models = {name: model.fit(train, known) for name, model in MODELS.items()}
    for item, (image, digit) in enumerate(zip(test, digits, strict=True)):
        for name, model in models.items():
            times = []
            for _ in range(3):
                start = time.perf_counter()
                guess = model.predict(image[None])[0]
                times.append(time.perf_counter() - start)
            yield {
                "model": name,
                "image": item,
                "correct": int(guess == digit),
                "latency": round(1e6 * min(times)),
            }


def main() -> None:
    """Write the file."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("results.csv"))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["model", "image", "correct", "latency"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows())
    print(f"{path}: {len(MODELS)} models, {ITEMS} images")


if __name__ == "__main__":
    main()
