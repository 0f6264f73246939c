"""The arrays that everything is made of."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Counts = NDArray[np.int64]
