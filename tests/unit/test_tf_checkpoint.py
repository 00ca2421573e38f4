"""TensorFlow's checkpoints without TensorFlow: what it wrote is read, damage and other kinds of files are reported."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from t2017_plugin.errors import UsageError
from t2017_plugin.t2t.tf_checkpoint import TensorFlowCheckpoint, checkpoint_prefix, masked_checksum
from tests.parity.tf_writer import RECORDED, STEP, trained_variables

pytestmark = pytest.mark.unit

NAME = f"model.ckpt-{STEP}"
# RFC 3720, appendix B.4, and the check value of CRC-32C.
CHECKSUMS = [
    (b"", 0x00000000),
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
]


@pytest.mark.parametrize(("data", "checksum"), CHECKSUMS)
def test_checksums(data: bytes, checksum: int) -> None:
    """Stored is the CRC-32C rotated right by 15 bits, plus a constant; undone, it is the CRC-32C again."""
    rotated = (masked_checksum(data) - 0xA282EAD8) & 0xFFFFFFFF
    assert (rotated << 15 | rotated >> 17) & 0xFFFFFFFF == checksum


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Copy the recorded checkpoint."""
    return Path(shutil.copytree(RECORDED, tmp_path / "train"))


def test_every_array_is_what_tensorflow_was_given() -> None:
    checkpoint, given = TensorFlowCheckpoint(RECORDED / NAME), trained_variables()
    assert checkpoint.shards == 2
    assert sorted(checkpoint) == sorted(given) and len(checkpoint) == len(given)
    for name, array in given.items():
        read, array = checkpoint[name], np.asarray(array)
        assert read.dtype == array.dtype and read.shape == array.shape and np.array_equal(read, array), name


def test_what_is_written_by_the_tensorflow_that_is_here(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed; its recorded files are read instead")
    from tests.parity.tf_writer import save

    numbers = np.random.default_rng(1)
    shapes: list[tuple[int, ...]] = [(), (1,), (3, 0), (7, 5), (1, 1, 30, 90), (2000, 300)]
    arrays = {
        f"scope_{kind}/of/{len(shape)}_axes_{number}": np.asarray(numbers.normal(size=shape) * 100).astype(kind)
        for number, shape in enumerate(shapes)
        for kind in ("float32", "float64", "float16", "int32", "int64")
    }
    # Names that share long beginnings, and enough of them for several blocks.
    arrays |= {f"body/decoder/layer_{number}/a_long_name/kernel": np.float32([number]) for number in range(400)}
    for devices in (1, 3):
        checkpoint = TensorFlowCheckpoint(save(arrays, tmp_path / str(devices), devices))
        assert checkpoint.shards == devices and sorted(checkpoint) == sorted(arrays)
        for name, array in arrays.items():
            assert checkpoint[name].dtype == array.dtype and np.array_equal(checkpoint[name], array), name


@pytest.mark.parametrize("named", [NAME, f"{NAME}.index", f"{NAME}.meta", f"{NAME}.data-00001-of-00002", ""])
def test_ways_to_name_a_checkpoint(folder: Path, named: str) -> None:
    assert checkpoint_prefix(folder / named) == str(folder / NAME)


def test_no_checkpoint_has_no_prefix(folder: Path) -> None:
    (folder / "model.npz").write_bytes(b"")
    assert checkpoint_prefix(folder / "model.npz") is None
    assert checkpoint_prefix(folder / "absent") is None


def test_the_newest_of_a_folder(folder: Path) -> None:
    shutil.copy(folder / f"{NAME}.index", folder / "model.ckpt-300000.index")
    assert checkpoint_prefix(folder) == str(folder / NAME)
    # As training writes it, with the path of another machine.
    (folder / "checkpoint").write_text(
        'model_checkpoint_path: "/gone/model.ckpt-300000"\nall_model_checkpoint_paths: "/gone/model.ckpt-250000"\n'
    )
    assert checkpoint_prefix(folder) == str(folder / "model.ckpt-300000")
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-9"\n')
    with pytest.raises(UsageError, match="the newest checkpoint is model.ckpt-9, but it holds model.ckpt-250000, "):
        checkpoint_prefix(folder)
    (folder / "checkpoint").unlink()
    with pytest.raises(UsageError, match="holds model.ckpt-250000, model.ckpt-300000; name one checkpoint"):
        checkpoint_prefix(folder)
    for path in folder.glob("*.index"):
        path.unlink()
    with pytest.raises(UsageError, match="it holds no file that ends in .index"):
        checkpoint_prefix(folder)


def cut(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("length", [0, 20, 47, 100, 2000, -1])
def test_an_index_that_was_cut_off(folder: Path, length: int) -> None:
    cut(folder / f"{NAME}.index", length)
    with pytest.raises(UsageError, match=r"model.ckpt-250000.index (is no index of TensorFlow's|is damaged).*copy it"):
        TensorFlowCheckpoint(folder / NAME)


def test_every_byte_of_the_index_counts(folder: Path) -> None:
    """A wrong byte is reported, or it is of a part that says nothing, and all the rest is read."""
    path = folder / f"{NAME}.index"
    whole, entries, reported = path.read_bytes(), TensorFlowCheckpoint(folder / NAME).entries, 0
    places = range(0, len(whole), 17)
    for place in places:
        flip(path, place)
        try:
            assert TensorFlowCheckpoint(folder / NAME).entries == entries
        except UsageError as error:
            assert "\n" not in str(error)
            reported += 1
        path.write_bytes(whole)
    assert reported > 0.9 * len(places)


def test_damaged_and_missing_data(folder: Path) -> None:
    data = [folder / f"{NAME}.data-0000{number}-of-00002" for number in range(2)]
    flip(data[1], 100)
    damaged = 0
    for name, array in trained_variables().items():
        try:
            assert np.array_equal(TensorFlowCheckpoint(folder / NAME)[name], array)
        except UsageError as error:
            assert f"data-00001-of-00002 is damaged or was cut off, found at the variable {name}" in str(error)
            damaged += 1
    assert damaged == 1
    checkpoint, last = TensorFlowCheckpoint(folder / NAME), "body/decoder/layer_0/conv_hidden_relu/conv2_single/kernel"
    for path in data:
        cut(path, 10)
    with pytest.raises(UsageError, match="is damaged or was cut off"):
        checkpoint[last]
    for path in data:
        path.unlink()
    with pytest.raises(UsageError, match="data-0000.-of-00002 is missing: copy all files that begin with"):
        checkpoint[last]


def test_no_such_variable_or_file(folder: Path) -> None:
    with pytest.raises(KeyError):
        TensorFlowCheckpoint(folder / NAME)["nothing"]
    with pytest.raises(UsageError, match="model.ckpt-9.index: no such file"):
        TensorFlowCheckpoint(folder / "model.ckpt-9")
