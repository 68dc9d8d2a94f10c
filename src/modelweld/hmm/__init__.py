"""A sticky hidden Markov model that finds its own number of states (HDP-HMM), fitted by variational ascent.

The model (Fox, Sudderth, Jordan and Willsky 2011): a stick of shares beta ~ GEM(gamma) says which states there are;
every state moves by a row pi_k ~ Dirichlet(eta beta + kappa e_k), kappa for staying; sequences start by pi_0 ~
Dirichlet(eta0 beta); frames of state k are Gaussian, with a mean and covariance of its own.

    forward_backward.py   the chain: posterior of paths, most probable path
    emissions.py          normal-Wishart posteriors of the states, from sums
    sticks.py             posteriors of the shares, and of the rows of transitions and of starts
    statistics.py         what is handed in, frames and lengths, and its sufficient statistics: sums per state, moves
                          (transitions), starts; in units of the data, what fusion adds up
    ascent.py             one step: all posteriors given statistics, statistics given all posteriors, the bound (ELBO);
                          states merged and deleted, as long as it rises
    windows.py            the start: short windows pooled by their evidence (of use to any hidden Markov model); how
                          much less than one frame an autocorrelated frame counts
    model.py              the estimator, and whether what is asked for makes sense

Importing this package loads numba and scikit-learn; ``import modelweld`` does not import it.
"""

from modelweld.hmm.sticky import StickyHDPHMM
from modelweld.hmm.windows import WindowStart, window_start

__all__ = ["StickyHDPHMM", "WindowStart", "window_start"]
