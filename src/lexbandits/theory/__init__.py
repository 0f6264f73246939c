"""The paper's bounds, printed and proved, one function per theorem; and the lower bound T*."""

from lexbandits.theory.paper_bounds import (
    active_gap_limits,
    bounds_table,
    cone_margins,
    confidence_width,
    effective_gaps,
    lexelim_in_anytime_regret,
    lexelim_in_pulls,
    lexelim_in_regret,
    lexelim_in_samples,
    lexelim_out_pulls,
    lexelim_out_regret,
    lexelim_out_samples,
    log_crossing,
    tradeoff_sums,
)

__all__ = [
    "active_gap_limits",
    "bounds_table",
    "cone_margins",
    "confidence_width",
    "effective_gaps",
    "lexelim_in_anytime_regret",
    "lexelim_in_pulls",
    "lexelim_in_regret",
    "lexelim_in_samples",
    "lexelim_out_pulls",
    "lexelim_out_regret",
    "lexelim_out_samples",
    "log_crossing",
    "tradeoff_sums",
]
