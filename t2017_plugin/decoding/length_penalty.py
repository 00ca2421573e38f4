"""Length penalties: how hypotheses of different lengths are compared.

    gnmt    lp(Y) = ((5 + |Y|) / 6)^alpha      Wu et al. 2016, equation 14: the paper's choice (section 6.1)
    power   lp(Y) = |Y|^alpha                  stock fairseq (sequence_generator.py:674)

A finished hypothesis is ranked by log P(Y | X) / lp(Y) in nats; |Y| counts generated tokens with EOS. The same alpha
means different things in the two: at 25 tokens, gnmt with 0.6 acts about as power with 0.5.
"""

from t2017_plugin.errors import UsageError

FORMS = ("gnmt", "power")


def length_penalty(length: float, alpha: float, form: str = "gnmt") -> float:
    """lp(Y) for a hypothesis of ``length`` tokens, EOS counted.

    Raises:
        ValueError: the form is not one of ``FORMS``.
    """
    if form == "gnmt":
        return ((5.0 + length) / 6.0) ** alpha
    if form == "power":
        return float(length) ** alpha
    raise ValueError(f"unknown length penalty {form!r}: choose one of {', '.join(FORMS)}")


def check_alpha(alpha: float) -> None:
    """Refuses an alpha below 0, with which a longer hypothesis could still overtake after the search has stopped."""
    if not alpha >= 0.0:
        raise UsageError(f"--lenpen (alpha) is {alpha}: the paper's search needs 0 or more; --search stock takes any")
