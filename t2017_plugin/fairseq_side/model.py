"""``t2017_transformer``: the model of section 3, registered with fairseq."""

from typing import Any

from fairseq.models import FairseqEncoderDecoderModel, register_model
from fairseq.tasks import TASK_REGISTRY
from torch import Tensor, nn

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.distributed import refuse_unjoined_processes
from t2017_plugin.fairseq_side.hub import TranslationHubInterface, load_hub_interface
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig
from t2017_plugin.modules.decoder import Decoder
from t2017_plugin.modules.embeddings import TokenEmbedding
from t2017_plugin.modules.encoder import Encoder
from t2017_plugin.modules.initialisation import initialise
from t2017_plugin.modules.positions import LearnedPositions, SinusoidPositions

MODEL_NAME = "t2017_transformer"


@register_model(MODEL_NAME, dataclass=T2017TransformerConfig)
class T2017Transformer(FairseqEncoderDecoderModel):
    """The Transformer of "Attention Is All You Need", section 3; every difference from it is a setting.

    Shape:
        src_tokens: (B, S), src_lengths: (B,), prev_output_tokens: (B, T) -> logits (B, T, V) and a dictionary
    """

    def __init__(self, config: Any, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__(encoder, decoder)
        self.config = config
        initialise(self, config.init)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "T2017Transformer":
        """Builds the model for the task's two dictionaries.

        Raises:
            UsageError: sizes that cannot be built, tables tied across two dictionaries, targets padded on the left.
        """
        source, target = task.source_dictionary, task.target_dictionary
        check(cfg, task)
        source_embedding = TokenEmbedding(len(source), cfg.d_model, source.pad())
        target_embedding = source_embedding
        if cfg.embeddings != "shared":
            target_embedding = TokenEmbedding(len(target), cfg.d_model, target.pad())
        output: nn.Embedding = target_embedding
        if cfg.embeddings == "separate":
            output = nn.Embedding(len(target), cfg.d_model)
        encoder = Encoder(cfg, source, source_embedding, build_positions(cfg, source.pad()))
        decoder = Decoder(cfg, target, target_embedding, output, build_positions(cfg, target.pad()))
        return cls(cfg, encoder, decoder)

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor, **options: Any) -> Any:
        """Logits of every target position, given the whole source and the earlier targets (section 3.1)."""
        encoder_out = self.encoder(src_tokens, src_lengths=src_lengths, **options)
        return self.decoder(prev_output_tokens, encoder_out=encoder_out, **options)

    def train(self, mode: bool = True) -> "T2017Transformer":
        """torch's switch between training and evaluation, which fairseq turns before every update.

        Raises:
            UsageError: to training, in one of several processes that a launcher started and fairseq did not join.
        """
        if mode:
            refuse_unjoined_processes()
        return super().train(mode)

    def prepare_for_inference_(self, cfg: Any) -> None:
        """Called by fairseq-generate and fairseq-interactive before they search.

        Raises:
            UsageError: the task would search fairseq's way and drop sentences.
        """
        name = cfg.task._name
        if not getattr(TASK_REGISTRY.get(name), "searches_as_the_paper", False):
            raise UsageError(
                f"the task {name!r} would search fairseq's way (another length penalty, dropped sentences): "
                "add --task t2017_translation (in Python: task={'_name': 't2017_translation'})"
            )
        super().prepare_for_inference_(cfg)

    @classmethod
    def from_pretrained(
        cls, model_name_or_path: str, checkpoint_file: str = "model.pt", data_name_or_path: str = ".", **kwargs: Any
    ) -> TranslationHubInterface:
        """Loads a trained model as fairseq's other models are, with the paper's beam 4 and alpha 0.6 as defaults.

        Keywords override settings saved in the checkpoint (``bpe="subword_nmt"``, ``bpe_codes=...``,
        ``tokenizer="moses"``, ``lenpen=...``).
        """
        return load_hub_interface(model_name_or_path, checkpoint_file, data_name_or_path, **kwargs)


def build_positions(cfg: Any, padding_index: int) -> nn.Module:
    """Positional encoding of one stack (section 3.5)."""
    if cfg.positions == "learned":
        return LearnedPositions(cfg.d_model, cfg.max_learned_positions)
    return SinusoidPositions(cfg.d_model, cfg.sinusoid, padding_index)


def check(cfg: Any, task: Any) -> None:
    """Refuses, in one line, what the model cannot be built from or would compute wrongly."""
    for name in ("layers", "d_model", "d_ff", "heads", "d_k", "d_v"):
        if getattr(cfg, name) < 1:
            raise UsageError(f"--{name.replace('_', '-')} is {getattr(cfg, name)}: it must be at least 1")
    for name in ("dropout", "attention_dropout", "relu_dropout"):
        if not 0.0 <= getattr(cfg, name) < 1.0:
            raise UsageError(f"--{name.replace('_', '-')} is {getattr(cfg, name)}: it must be in [0, 1)")
    source, target = task.source_dictionary, task.target_dictionary
    if cfg.embeddings == "shared" and source != target:
        raise UsageError(
            f"one table for source and target needs one dictionary, but they differ ({len(source)} and {len(target)} "
            "types): run fairseq-preprocess with --joined-dictionary, or train with --embeddings decoder or separate"
        )
    if getattr(getattr(task, "cfg", None), "left_pad_target", False):
        raise UsageError("targets must be padded on the right: leave --left-pad-target out")
