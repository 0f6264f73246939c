"""The paper's bounds, printed and proved, one function per theorem; and the lower bounds."""

from lexbandits.theory.paper_bounds import active_gap_limits as active_gap_limits
from lexbandits.theory.paper_bounds import cone_margins as cone_margins
from lexbandits.theory.paper_bounds import confidence_width as confidence_width
from lexbandits.theory.paper_bounds import effective_gaps as effective_gaps
from lexbandits.theory.paper_bounds import lexelim_in_anytime_regret as lexelim_in_anytime_regret
from lexbandits.theory.paper_bounds import lexelim_in_pulls as lexelim_in_pulls
from lexbandits.theory.paper_bounds import lexelim_in_regret as lexelim_in_regret
from lexbandits.theory.paper_bounds import lexelim_in_samples as lexelim_in_samples
from lexbandits.theory.paper_bounds import lexelim_out_pulls as lexelim_out_pulls
from lexbandits.theory.paper_bounds import lexelim_out_regret as lexelim_out_regret
from lexbandits.theory.paper_bounds import lexelim_out_samples as lexelim_out_samples
from lexbandits.theory.paper_bounds import log_crossing as log_crossing
from lexbandits.theory.paper_bounds import tradeoff_sums as tradeoff_sums
from lexbandits.theory.regret import regret_constants as regret_constants
