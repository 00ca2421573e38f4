"""The vocabulary of an imported Tensor2Tensor model: ids, files, refusals; models and search take it."""

from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.dictionary import T2TDictionary
from t2017_plugin.fairseq_side.generator import PaperGenerator
from t2017_plugin.fairseq_side.model import T2017Transformer
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig
from tests.builders import TINY

pytestmark = pytest.mark.unit


def test_ids_are_t2ts() -> None:
    dictionary = T2TDictionary(["a", "b@@"])
    assert (dictionary.pad(), dictionary.eos()) == (0, 1)
    assert (dictionary.index("a"), dictionary.index("b@@"), len(dictionary)) == (2, 3, 4)
    # No such symbols: padding answers for them.
    assert dictionary.bos() == dictionary.unk() == dictionary.pad()


def test_text_there_and_back() -> None:
    dictionary = T2TDictionary(["a", "b@@"])
    ids = dictionary.encode_line("b@@ a a", add_if_not_exist=False)
    assert ids.tolist() == [3, 2, 2, 1]
    # Padding and EOS are not printed, the halves of a word are joined.
    assert dictionary.string(torch.tensor([3, 2, 2, 1, 0, 0]), "subword_nmt") == "ba a"


def test_a_word_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(UsageError, match="'c' is not in the vocabulary"):
        T2TDictionary(["a"]).encode_line("a c", add_if_not_exist=False)


def test_rows_without_a_symbol() -> None:
    dictionary = T2TDictionary(["a"], size=6)
    assert (len(dictionary), dictionary.index("a"), dictionary[5]) == (6, 2, "<unused_5>")
    with pytest.raises(UsageError, match="5 symbols, .* a table of 4 rows"):
        T2TDictionary(["a", "b", "c"], size=4)


def test_a_symbol_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'a' is twice in the vocabulary \(ids 2, 4\)"):
        T2TDictionary(["a", "b", "a"])


def test_file_there_and_back(tmp_path: Path) -> None:
    path = str(tmp_path / "dict.de.txt")
    dictionary = T2TDictionary(["a", "b"], size=5)
    dictionary.save(path)
    loaded = T2TDictionary.load(path)
    assert loaded == dictionary and loaded.symbols == dictionary.symbols and loaded.count == dictionary.count
    assert loaded.encode_line("a b", add_if_not_exist=False).tolist() == [2, 3, 1]


def test_its_files_and_fairseqs_cannot_be_mistaken(tmp_path: Path) -> None:
    ours, stock = str(tmp_path / "ours.txt"), str(tmp_path / "stock.txt")
    T2TDictionary(["a"]).save(ours)
    plain = Dictionary()
    plain.add_symbol("a")
    plain.save(stock)
    with pytest.raises(RuntimeError, match="<pad>"):
        Dictionary.load(ours)
    with pytest.raises(UsageError, match="first lines are not <pad> and <EOS>"):
        T2TDictionary.load(stock)


def make_model(source: Dictionary, target: Dictionary, **settings: object) -> T2017Transformer:
    task = SimpleNamespace(source_dictionary=source, target_dictionary=target, cfg=SimpleNamespace())
    torch.manual_seed(1)
    return T2017Transformer.build_model(T2017TransformerConfig(**{**TINY, **settings}), task).eval()


def test_one_table_needs_one_vocabulary() -> None:
    words = ["a", "b"]
    make_model(T2TDictionary(words), T2TDictionary(words))
    with pytest.raises(UsageError, match="one table for source and target needs one dictionary"):
        make_model(T2TDictionary(words), T2TDictionary(["b", "a"]))
    with pytest.raises(UsageError, match="one table for source and target needs one dictionary"):
        make_model(T2TDictionary(words), Dictionary())


def test_the_search_may_end_and_never_generates_padding() -> None:
    dictionary = T2TDictionary(f"w{i}" for i in range(10))
    model = make_model(dictionary, dictionary)
    tokens = torch.tensor([[5, 7, 1, 0], [3, 4, 9, 1]])
    generator = PaperGenerator([model], dictionary, Namespace(beam=4, lenpen=0.6, nbest=4, min_len=-1))
    found = generator.generate([model], {"net_input": {"src_tokens": tokens, "src_lengths": tokens.ne(0).sum(1)}})
    generated = [hypothesis["tokens"].tolist() for sentence in found for hypothesis in sentence]
    assert all(0 not in tokens for tokens in generated)
    assert any(tokens[-1] == 1 for tokens in generated)


def test_first_position_of_the_stock_layout() -> None:
    """Stock counts from padding index + 1, so its own rule gives 1 here."""
    dictionary = T2TDictionary(["a"])
    assert make_model(dictionary, dictionary, sinusoid="stock").encoder.positions.first_position == 1
    assert make_model(Dictionary(), Dictionary(), sinusoid="stock").encoder.positions.first_position == 2
