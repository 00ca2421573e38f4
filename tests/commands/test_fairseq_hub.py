"""``T2017Transformer.from_pretrained``: a trained model in Python, text in, text out."""

from pathlib import Path

import pytest

from t2017_plugin import T2017Transformer
from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.generator import PaperGenerator
from t2017_plugin.fairseq_side.hub import TranslationHubInterface
from tests.commands.fairseq_runs import Corpus, generation, run_here, sentences, text_flags

pytestmark = pytest.mark.commands


@pytest.fixture(scope="module")
def hub(corpus: Corpus, trained: Path) -> TranslationHubInterface:
    return T2017Transformer.from_pretrained(
        str(trained.parent),
        trained.name,
        str(corpus.data_bin),
        tokenizer="moses",
        source_lang="en",
        target_lang="de",
        bpe="subword_nmt",
        bpe_codes=str(corpus.codes),
    )


def test_it_searches_as_fairseq_generate_does(corpus: Corpus, trained: Path, hub: TranslationHubInterface) -> None:
    """Beam 4 and alpha 0.6 by default; raw text in, detokenised text out, in order."""
    assert (hub.cfg.generation.beam, hub.cfg.generation.lenpen) == (4, 0.6)
    assert isinstance(hub.task.build_generator(hub.models, hub.cfg.generation), PaperGenerator)
    outcome = run_here("generate", *generation(corpus.data_bin, trained, *text_flags(corpus)))
    source = [pair[0] for pair in sentences("test")]
    assert hub.translate(source) == [outcome.texts("D")[number] for number in range(len(source))]
    assert hub.translate(source[3]) == outcome.texts("D")[3]


def test_beam_and_alpha_of_one_call(hub: TranslationHubInterface) -> None:
    tokens = [hub.encode(source) for source, _ in sentences("test")]
    for beam in (1, 5):
        hypotheses = hub.generate(tokens, beam=beam, lenpen=0.0)
        assert max(map(len, hypotheses)) <= beam
        for best, *_others in hypotheses:
            # alpha 0: log P in nats as it is.
            assert float(best["score"]) == pytest.approx(float(best["positional_scores"].sum()), abs=1e-4)
    # Nothing of it stays.
    assert (hub.cfg.generation.beam, hub.cfg.generation.lenpen) == (4, 0.6)


def test_alpha_for_good(corpus: Corpus, trained: Path, hub: TranslationHubInterface) -> None:
    longer = T2017Transformer.from_pretrained(
        str(trained.parent), trained.name, str(corpus.data_bin), beam=8, lenpen=3.0
    )
    assert (longer.cfg.generation.beam, longer.cfg.generation.lenpen) == (8, 3.0)
    tokens = [hub.encode(source) for source, _ in sentences("test")]
    lengths = [sum(len(best[0]["tokens"]) for best in one.generate(tokens)) for one in (hub, longer)]
    assert lengths[0] < lengths[1]


def test_no_such_checkpoint_is_one_line(corpus: Corpus, trained: Path) -> None:
    with pytest.raises(UsageError, match="nothing.pt: no such checkpoint"):
        T2017Transformer.from_pretrained(str(trained.parent), "nothing.pt", str(corpus.data_bin))
