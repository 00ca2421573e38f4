"""Checkpoints written by TensorFlow itself, as its programs of version 1 write them.

``python -m tests.parity.tf_writer`` makes the files of ``tests/golden/tensorflow`` again.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tests.parity.t2t_golden import FOLDER, load
from tests.parity.t2t_versions import Arrays, sharded

STEP = 250000
RECORDED = FOLDER / "tensorflow"


def trained_variables() -> Arrays:
    """Return the variables of ``beam_weak``, its table in 16 parts, with counters and some of Adam's slots."""
    variables = {key[4:]: array for key, array in load("beam_weak").items() if key.startswith("var/")}
    variables = sharded(variables)
    slots = {f"{name}/Adam": array + 1 for name, array in variables.items() if "layer_norm" in name}
    powers = {"beta1_power": np.float32(0.5), "losses_avg/problem_0/total_loss": np.float32(2.5)}
    return {**variables, **slots, **powers, "global_step": np.int64(STEP)}


def save(arrays: Mapping[str, np.ndarray], folder: Path, devices: int = 1) -> str:
    """Write a checkpoint with ``tf.train.Saver``, a data file per device; return its prefix."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow

    folder.mkdir(parents=True, exist_ok=True)
    tf = tensorflow.compat.v1
    processors = tf.ConfigProto(device_count={"CPU": devices})
    with tensorflow.Graph().as_default(), tf.Session(config=processors) as session:
        for number, (name, array) in enumerate(arrays.items()):
            with tf.device(f"/cpu:{number % devices}"):
                tf.get_variable(name, initializer=array, use_resource=False)
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver(sharded=devices > 1, save_relative_paths=True)
        return str(saver.save(session, str(folder / "model.ckpt"), global_step=STEP, write_meta_graph=False))


if __name__ == "__main__":
    print(save(trained_variables(), RECORDED, devices=2))
