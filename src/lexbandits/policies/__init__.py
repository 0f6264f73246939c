"""The policies by name, and what an own one is made of: `Rules` on a state with `Arms`, in kernels."""

from lexbandits._jit import kernel as kernel
from lexbandits.policies import algorithms
from lexbandits.policies.algorithms import *  # noqa: F403
from lexbandits.policies.algorithms import Policy
from lexbandits.policies.base import Arms as Arms
from lexbandits.policies.base import Elimination as Elimination
from lexbandits.policies.base import Rules as Rules
from lexbandits.policies.base import add_reward as add_reward
from lexbandits.policies.base import eliminate as eliminate
from lexbandits.policies.base import fewest_pulls as fewest_pulls
from lexbandits.policies.base import untried as untried

BY_NAME: dict[str, type[Policy]] = {
    name: policy
    for name, policy in vars(algorithms).items()
    if isinstance(policy, type) and issubclass(policy, Policy) and policy is not Policy
}
