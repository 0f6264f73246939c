"""The cheapest instance in which an arm x is no acceptable answer, when moving arm a's means costs w_a.

x is not acceptable when some arm y that reaches objective i is better there by more than reach_i. What y has
to be is a list of demands "this arm's mean is at least that one's plus so much", objective by objective: a
projection on a polyhedron for each. Whom y must not be worse than depends on who leaves before, which
is decided by branch and bound. docs/lower-bound.md derives it.
"""

import heapq
import math
from itertools import count
from typing import NamedTuple

import numpy as np

from lexbandits._arrays import Vector

CLOSE = 1e-11  # of an objective's scale: means this near to a boundary may be moved across it for nothing


class ToleranceProblem(NamedTuple):
    """Means and noise of the truth, and what does not matter."""

    means: Vector  # (K, m)
    sds: Vector  # (K, m)
    tolerance: Vector  # (m,)
    reach: Vector  # (m,) tolerance + resolution


class Demand(NamedTuple):
    """The mean of `upper` is at least that of `lower` plus `lead`."""

    upper: int
    lower: int
    lead: float


class _Node(NamedTuple):
    """Alternatives that meet the demands of each objective, and the arms said to leave at one."""

    demands: tuple[frozenset[Demand], ...]
    leaves: dict[int, int]
    bounds: tuple[float, ...]
    points: tuple[Vector, ...]  # of each objective, all arms' means in the cheapest of them


def is_acceptable(problem: ToleranceProblem, answer: int) -> bool:
    """Whether no arm that deserves to reach an objective is better there by more than it may be."""
    reached = np.ones(len(problem.means), np.bool_)
    for j, means in enumerate(problem.means.T):
        behind = means[reached].max() - means
        if behind[answer] > problem.reach[j] + _slack(problem, j):
            return False
        reached &= behind <= problem.tolerance[j] + _slack(problem, j)
        reached[answer] = True
    return True


def least_cost(
    problem: ToleranceProblem, weights: Vector, answer: int, most_nodes: int
) -> tuple[float, Vector, int]:
    """What every alternative to `answer` costs at least, costs per arm and unit of weight, nodes used.

    The costs (n, K) are those of the cheapest alternative for each way to fail, where it was found.
    """
    n_arms, n_objectives = problem.means.shape
    least, found, used = math.inf, [], 0
    for better in range(n_arms):
        for i in range(n_objectives):
            if better != answer:
                bound, costs, nodes = overtake(problem, weights, answer, better, i, most_nodes - used)
                least, used = min(least, bound), used + nodes
                found += [] if costs is None else [costs]
    return least, np.array(found).reshape(len(found), n_arms), used


def overtake(
    problem: ToleranceProblem, weights: Vector, answer: int, better: int, last: int, most_nodes: int
) -> tuple[float, Vector | None, int]:
    """The same for alternatives in which `better` reaches objective `last` and beats the answer there.

    The bound holds wherever the search stops; the costs are None where it found no alternative. With three
    objectives or fewer, and nodes enough, the bound is what the alternative found costs.
    """
    ties = count()
    first = _root(problem, weights, answer, better, last)
    heap = [(sum(first.bounds), next(ties), first)] if math.isfinite(sum(first.bounds)) else []
    least = math.inf  # of nodes that cannot be divided further
    nodes = 0
    while heap and nodes < most_nodes:
        bound, _, node = heapq.heappop(heap)
        nodes += 1
        obstacle = _obstacle(problem, node, answer, better)
        if obstacle is None:
            return min(least, bound), _costs(problem, node), nodes
        children = _divide(problem, weights, node, better, *obstacle)
        if not children:
            least = min(least, bound)
        for child in children:
            if math.isfinite(sum(child.bounds)):
                heapq.heappush(heap, (sum(child.bounds), next(ties), child))
    return min([least, *(bound for bound, _, _ in heap)]), None, nodes


def _root(problem: ToleranceProblem, weights: Vector, answer: int, better: int, last: int) -> _Node:
    """What is asked of every such alternative: all arms reach the first objective, the answer every one."""
    demands = []
    for j in range(last + 1):
        others = range(len(weights)) if j == 0 else [answer]
        demands.append({Demand(better, arm, -float(problem.tolerance[j])) for arm in others if arm != better})
    demands[last] = {Demand(better, answer, float(problem.reach[last]))}
    solved = [nearest(problem, weights, j, frozenset(told)) for j, told in enumerate(demands)]
    bounds, points = zip(*solved, strict=True)
    return _Node(tuple(map(frozenset, demands)), {}, bounds, points)


def _obstacle(problem: ToleranceProblem, node: _Node, answer: int, better: int) -> tuple[int, int] | None:
    """The arm and the objective by which `better` does not reach the last objective, if there is one.

    Who is at the boundary of leaving leaves: it can be moved by as little as one likes.
    """
    reached = np.ones(len(problem.means), np.bool_)
    for j, means in enumerate(node.points[:-1]):
        tolerance = problem.tolerance[j]
        slack = _slack(problem, j)
        ahead = np.where(reached, means - means[better] - tolerance, -math.inf)
        ahead[answer] = -math.inf  # demanded already
        if ahead.max() > slack:
            return int(ahead.argmax()), j
        stays = means > means[reached].max() - tolerance + slack
        stays[[answer, better]] = True
        reached &= stays
    return None


def _divide(
    problem: ToleranceProblem, weights: Vector, node: _Node, better: int, arm: int, j: int
) -> list[_Node]:
    """Nodes that together hold all alternatives of this one: `better` keeps up with `arm` on j, or it left.

    It left at e if somebody there is ahead of it by the tolerance; whoever that is, he is not ahead of
    `better` by more, so the arm is no better than `better`. That is demanded first, and if it is not
    enough, that one given arm be ahead. Whether that one reaches e is not asked, and holds for the first.
    """
    left = node.leaves.get(arm, j)
    if left < j:
        tolerance = float(problem.tolerance[left])
        if any(demand.lower == arm and demand.lead == tolerance for demand in node.demands[left]):
            return []
        leaders = [Demand(u, arm, tolerance) for u in range(len(weights)) if u != arm]
        return [_with(problem, weights, node, left, leader) for leader in leaders]
    children = [_with(problem, weights, node, j, Demand(better, arm, -float(problem.tolerance[j])))]
    if arm not in node.leaves:
        for e in range(j):
            child = _with(problem, weights, node, e, Demand(better, arm, 0.0))
            children.append(child._replace(leaves={**node.leaves, arm: e}))
    return children


def _with(problem: ToleranceProblem, weights: Vector, node: _Node, j: int, demand: Demand) -> _Node:
    demands = node.demands[j] | {demand}
    bound, point = nearest(problem, weights, j, demands)
    return node._replace(
        demands=(*node.demands[:j], demands, *node.demands[j + 1 :]),
        bounds=(*node.bounds[:j], bound, *node.bounds[j + 1 :]),
        points=(*node.points[:j], point, *node.points[j + 1 :]),
    )


def nearest(
    problem: ToleranceProblem, weights: Vector, j: int, demands: frozenset[Demand]
) -> tuple[float, Vector]:
    """The cheapest means on objective j that meet the demands, and what meeting them costs at least.

    Lawson and Hanson's least distance programming. The bound is the dual's, true for any multipliers;
    infinite where the demands contradict each other. An arm of infinite weight stays where it is.
    """
    from scipy.optimize import nnls

    means = problem.means[:, j]
    lacking = {d: d.lead - float(means[d.upper] - means[d.lower]) for d in sorted(demands)}
    most = max(lacking.values())
    if most <= 0:
        return 0.0, means
    unit = problem.sds[:, j] / np.sqrt(weights)  # what a move of cost ½ covers
    if np.isinf(weights).any():
        stuck = [d for d in lacking if unit[d.upper] == 0 and unit[d.lower] == 0]
        if any(lacking.pop(demand) > 0 for demand in stuck):
            return math.inf, means
    rows, right = np.zeros((len(lacking), means.size)), np.empty(len(lacking))
    for k, (demand, lack) in enumerate(lacking.items()):
        norm = math.hypot(unit[demand.upper], unit[demand.lower])
        rows[k, demand.upper], rows[k, demand.lower] = unit[demand.upper] / norm, -unit[demand.lower] / norm
        right[k] = lack / norm
    scale = float(right.max())
    right /= scale
    # Least distance programming: the point nearest to 0 with rows·x ≥ right is the residual of this
    # non-negative least-squares problem, divided by its last entry (Lawson and Hanson 1974, chapter 23).
    multipliers, _ = nnls(np.vstack([rows.T, right]), np.append(np.zeros(means.size), 1.0))
    pushed, gained = multipliers @ rows, float(multipliers @ right)
    length = float(pushed @ pushed)
    if 1 - gained < 1e-12 or length == 0:
        return math.inf, means
    return 0.5 * (scale * gained) ** 2 / length, means + unit * pushed * (scale / (1 - gained))


def _costs(problem: ToleranceProblem, node: _Node) -> Vector:
    costs = np.zeros(len(problem.means))
    for j, point in enumerate(node.points):
        costs += ((point - problem.means[:, j]) / problem.sds[:, j]) ** 2 / 2
    return costs


def _slack(problem: ToleranceProblem, j: int) -> float:
    return CLOSE * max(float(np.ptp(problem.means[:, j])), float(problem.reach[j]))
