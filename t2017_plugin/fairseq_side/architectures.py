"""Named architectures: the rows of Table 3 that stand on their own, and a small model for CPUs.

A setting given on the command line wins over the architecture's, and what an architecture does not
name is base's. The two rows of Table 3 that vary label smoothing are no architectures: they live in
``configs/`` only.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from fairseq.models import register_model_architecture

from t2017_plugin.fairseq_side.guards import check_command_line
from t2017_plugin.fairseq_side.model import MODEL_NAME
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig, flag_settings
from t2017_plugin.paper.table3 import BIG_ENFR, PARSING, ROWS

# Not in the paper: trains in minutes on two CPU cores.
TINY = {"N": 2, "d_model": 128, "d_ff": 512, "h": 4, "d_k": 32, "d_v": 32}

# Only what differs from base.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    **{f"t2017_{row.name}": flag_settings(row.model) for row in ROWS if row.name == "base" or row.model},
    "t2017_big_enfr": flag_settings(BIG_ENFR),
    "t2017_parsing": flag_settings(PARSING),
    "t2017_tiny": flag_settings(TINY),
}


def architecture_settings(architecture: str) -> dict[str, Any]:
    """Return all settings of a named architecture, base's filled in."""
    base = {each.name: each.default for each in fields(T2017TransformerConfig) if each.name != "_name"}
    return {**base, **ARCHITECTURES[architecture]}


def apply(settings: Mapping[str, Any], args: Any) -> None:
    """Fill in the settings that the command line left open."""
    for name, value in settings.items():
        if getattr(args, name, None) is None:
            setattr(args, name, value)
    check_command_line(args)


def apply_base(args: Any) -> None:
    """Leave the settings of the model's bare name, which are base's, and check the command line."""
    apply({}, args)


def _register(name: str) -> None:
    register_model_architecture(MODEL_NAME, name)(lambda args: apply(architecture_settings(name), args))


for _name in ARCHITECTURES:
    _register(_name)
