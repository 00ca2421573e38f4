"""Named architectures: the rows of Table 3 that stand on their own, and a small model for CPUs.

A setting given on the command line wins over the architecture's, and what an architecture does not name is the paper's
base model (the defaults of ``T2017TransformerConfig``).
"""

from collections.abc import Mapping
from typing import Any

from fairseq.models import ARCH_CONFIG_REGISTRY, register_model_architecture

from t2017_plugin.fairseq_side.checkpoint_files import refuse_unwritable
from t2017_plugin.fairseq_side.model import MODEL_NAME
from t2017_plugin.fairseq_side.precision import settle_precision
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig

BIG = {"d_model": 1024, "d_ff": 4096, "heads": 16}

# Only what differs from base, as in Table 3; dropout of big for English-French is from section 6.1. The two rows of
# Table 3 that vary label smoothing are no architectures: they live in configs/ only.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "t2017_base": {},
    "t2017_big": {**BIG, "dropout": 0.3},
    "t2017_big_enfr": {**BIG, "dropout": 0.1},
    "t2017_a_h1": {"heads": 1, "d_k": 512, "d_v": 512},
    "t2017_a_h4": {"heads": 4, "d_k": 128, "d_v": 128},
    "t2017_a_h16": {"heads": 16, "d_k": 32, "d_v": 32},
    "t2017_a_h32": {"heads": 32, "d_k": 16, "d_v": 16},
    # Rows B vary d_k alone: only with d_v = 64 do the printed 58M and 60M come out.
    "t2017_b_dk16": {"d_k": 16},
    "t2017_b_dk32": {"d_k": 32},
    "t2017_c_n2": {"layers": 2},
    "t2017_c_n4": {"layers": 4},
    "t2017_c_n8": {"layers": 8},
    "t2017_c_d256": {"d_model": 256, "d_k": 32, "d_v": 32},
    "t2017_c_d1024": {"d_model": 1024, "d_k": 128, "d_v": 128},
    "t2017_c_ff1024": {"d_ff": 1024},
    "t2017_c_ff4096": {"d_ff": 4096},
    "t2017_d_drop0": {"dropout": 0.0},
    "t2017_d_drop2": {"dropout": 0.2},
    "t2017_e_learned": {"positions": "learned"},
    # Section 6.3: 4 layers of width 1024, the rest as base. d_k and d_v are d_model / h as in the authors' code, which
    # has three tables here; dropout 0.2, on attention too, is theirs (the paper says "selected on section 22").
    "t2017_parsing": {
        "layers": 4,
        "d_model": 1024,
        "d_k": 128,
        "d_v": 128,
        "dropout": 0.2,
        "attention_dropout": 0.2,
        "embeddings": "separate",
    },
    # Not in the paper: trains in minutes on two CPU cores.
    "t2017_tiny": {"layers": 2, "d_model": 128, "d_ff": 512, "heads": 4, "d_k": 32, "d_v": 32},
}


def settings(architecture: str) -> dict[str, Any]:
    """All settings of a named architecture, the paper's defaults filled in."""
    config = T2017TransformerConfig()
    names = [name for name in config._get_all_attributes() if name != "_name"]
    return {**{name: getattr(config, name) for name in names}, **ARCHITECTURES[architecture]}


def apply(settings_of_architecture: Mapping[str, Any], args: Any) -> None:
    """Fills the settings the command line left open."""
    for name, value in settings_of_architecture.items():
        if getattr(args, name, None) is None:
            setattr(args, name, value)
    settle(args)


def settle(args: Any) -> None:
    """What can be put right, or told in one line, as soon as the command line is read."""
    settle_precision(args)
    if getattr(args, "save_dir", None) and not getattr(args, "no_save", False):
        refuse_unwritable(args.save_dir)


def _register(name: str) -> None:
    register_model_architecture(MODEL_NAME, name)(lambda args: apply(settings(name), args))


for _name in ARCHITECTURES:
    _register(_name)

# The model's own name is an architecture too, the base model; fairseq gives it a function that does nothing.
ARCH_CONFIG_REGISTRY[MODEL_NAME] = settle
