"""``t2017_transformer``: the encoder and decoder of ``paper.model``, in the shape fairseq wants.

Nothing is computed here. Parameters have the names that the paper's modules give them. What
``fast`` computes quicker is passed in: attention in one call, dropout, and the cached step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder, register_model
from fairseq.tasks import TASK_REGISTRY
from torch import Tensor, nn

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.guards import refuse_unjoined_processes
from t2017_plugin.fairseq_side.hub import TranslationHubInterface, load_hub_interface
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig, paper_model
from t2017_plugin.fast.decoding import DecoderCache, DecoderStep
from t2017_plugin.fast.layers import fused_attention, use_fast_dropout
from t2017_plugin.paper.config import Model
from t2017_plugin.paper.initial_weights import draw_initial_weights
from t2017_plugin.paper.model import Decoder, Encoder, TokenEmbedding, attention, make_tables

MODEL_NAME = "t2017_transformer"
CACHE = "t2017_decoder"
STEP = "t2017_decoder_step"
NO_LIMIT = 1_000_000  # sinusoids have none, and fairseq computes with it


class _FairseqEncoderLast(FairseqEncoder):
    """A FairseqEncoder that the paper's encoder can stand in front of: its dictionary is set afterwards."""

    def __init__(self) -> None:
        super().__init__(None)


class _FairseqDecoderLast(FairseqIncrementalDecoder):
    """As above, for the decoder."""

    def __init__(self) -> None:
        super().__init__(None)


class T2017Encoder(Encoder, _FairseqEncoderLast):
    """The paper's encoder. Its output is batch-first, unlike stock's; nothing outside this model looks inside."""

    def __init__(self, config: Model, embedding: TokenEmbedding, dictionary: Dictionary) -> None:
        super().__init__(config, embedding)
        self.dictionary = dictionary
        self.longest = longest_sentence(config)

    def forward(  # type: ignore[override]
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
        need_weights: bool = False,
        **unused: Any,
    ) -> dict[str, list[Tensor]]:
        """Run the stack.

        Shape:
            src_tokens: (B, S) -> encoder_out[0]: (B, S, d_model); encoder_padding_mask[0]: (B, S); if asked for,
            encoder_states: the input of the first layer and the output of each, attention_weights: (B, h, S, S) of each
        """
        refuse_longer(src_tokens, self.longest)
        with inner_states(self.layers, return_all_hiddens) as states:
            memory, weights = super().forward(src_tokens, attention if need_weights else fused_attention)
        return {
            "encoder_out": [memory],
            "encoder_padding_mask": [src_tokens.eq(self.embedding.padding_index)],
            "encoder_states": states,
            "attention_weights": [each for each in weights if each is not None],
        }

    def reorder_encoder_out(self, encoder_out: dict[str, list[Tensor]], new_order: Tensor) -> dict[str, list[Tensor]]:
        """Select sentences of a batch, as fairseq's own search asks for. Shape: new_order: (new B,)."""
        return {key: [tensor.index_select(0, new_order) for tensor in value] for key, value in encoder_out.items()}

    def max_positions(self) -> int:
        """Return the longest source in tokens."""
        return self.longest or NO_LIMIT


class T2017Decoder(Decoder, _FairseqDecoderLast):
    """The paper's decoder: over all positions at once, or one step at a time from what is remembered."""

    def __init__(self, config: Model, embedding: TokenEmbedding, output: nn.Embedding, dictionary: Dictionary) -> None:
        super().__init__(config, embedding, output)
        self.dictionary = dictionary
        self.longest = longest_sentence(config)
        self.need_weights = False
        self.is_final = False

    def forward(  # type: ignore[override]
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]],
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
        return_all_hiddens: bool = False,
        need_weights: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Compute logits (or features) of every position, or of the newest when ``incremental_state`` is given.

        Shape:
            prev_output_tokens: (B, T), or (B * beam, T) with a cache -> (B, T, V) or (B * beam, 1, V); the second value
            holds "attn" (weights of the last layer averaged over heads, (B, T, S), or None), "inner_states",
            "self_attention_weights" and "encoder_attention_weights" (a list over layers)
        """
        if incremental_state is not None:
            x, extra = self._newest_position(prev_output_tokens, encoder_out, incremental_state, need_weights)
        else:
            refuse_longer(prev_output_tokens, self.longest)
            memory, hidden = memory_of(encoder_out)
            with inner_states(self.layers, return_all_hiddens) as states:
                x, self_weights, memory_weights = super().forward(
                    prev_output_tokens, memory, hidden, attention if need_weights else fused_attention
                )
            last = memory_weights[-1]
            extra = {
                "attn": [None if last is None else last.mean(dim=1)],
                "inner_states": states if return_all_hiddens else None,
                "self_attention_weights": self_weights if need_weights else [],
                "encoder_attention_weights": memory_weights if need_weights else [],
            }
        return (x if features_only else self.logits(x)), extra

    def _newest_position(
        self, tokens: Tensor, encoder_out: dict[str, list[Tensor]], state: dict[str, Any], need_weights: bool
    ) -> tuple[Tensor, dict[str, Any]]:
        rows = tokens.size(0)
        if CACHE not in state:
            memory, hidden = memory_of(encoder_out)
            state[CACHE] = DecoderCache(self, memory, hidden, rows // memory.size(0))
            state[STEP] = DecoderStep(self)
        newest = tokens[:, -1].view(state[CACHE].sentences, -1)
        x, weights = state[STEP].features(newest, state[CACHE], need_weights or self.need_weights)
        if weights is not None:
            weights = weights.mean(dim=1).reshape(rows, 1, -1)
        return x.reshape(rows, 1, -1), {"attn": [weights], "inner_states": None}

    def extract_features(self, prev_output_tokens: Tensor, **kwargs: Any) -> tuple[Tensor, dict[str, Any]]:
        """Do ``forward`` without the projection, under fairseq's name. Shape: (B, T) -> (B, T, d_model)."""
        return self.forward(prev_output_tokens, features_only=True, **kwargs)

    def output_layer(self, features: Tensor) -> Tensor:
        """Do ``logits`` under fairseq's name. Shape: (..., d_model) -> (..., V)."""
        return self.logits(features)

    def reorder_incremental_state(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        """Reorder for fairseq's own search, where each hypothesis is a sentence. Shape: new_order: (new B,)."""
        if CACHE in incremental_state:
            incremental_state[CACHE].keep_sentences(new_order)

    def make_generation_fast_(self, need_attn: bool = False, **unused: Any) -> None:
        """Hear from fairseq that the weights stay as they are, and whether attention is to be returned."""
        self.need_weights = bool(need_attn)
        self.is_final = True

    def max_positions(self) -> int:
        """Return the longest target in tokens."""
        return self.longest or NO_LIMIT


@register_model(MODEL_NAME, dataclass=T2017TransformerConfig)
class T2017Transformer(FairseqEncoderDecoderModel):
    """The Transformer of "Attention Is All You Need", section 3; every difference from it is a setting.

    Shape:
        src_tokens: (B, S), src_lengths: (B,), prev_output_tokens: (B, T) -> logits (B, T, V) and a dictionary
    """

    def __init__(self, config: Any, encoder: T2017Encoder, decoder: T2017Decoder) -> None:
        super().__init__(encoder, decoder)
        self.config = config
        draw_initial_weights(self, str(config.init))
        use_fast_dropout(self)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> T2017Transformer:
        """Build the model for the task's two dictionaries.

        Raises:
            UsageError: sizes that cannot be built, tables tied across two dictionaries, targets padded on the left.
        """
        config = paper_model(cfg)
        source, target = task.source_dictionary, task.target_dictionary
        if config.embeddings == "shared" and source != target:
            raise UsageError(
                f"one table for source and target needs one dictionary, but they differ ({len(source)} and "
                f"{len(target)} types): run fairseq-preprocess with --joined-dictionary, or train with --embeddings "
                "decoder or separate"
            )
        if getattr(getattr(task, "cfg", None), "left_pad_target", False):
            raise UsageError("targets must be padded on the right: leave --left-pad-target out")
        tables = make_tables(config, len(source), len(target), source.pad(), target.pad())
        encoder = T2017Encoder(config, tables[0], source)
        decoder = T2017Decoder(config, tables[1], tables[2], target)
        return cls(cfg, encoder, decoder)

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor, **options: Any) -> Any:
        """Compute logits of every target position, given the whole source and the earlier targets (section 3.1).

        Shape:
            src_tokens: (B, S), src_lengths: (B,), prev_output_tokens: (B, T) -> (B, T, V)
        """
        encoder_out = self.encoder(src_tokens, src_lengths=src_lengths, **options)
        return self.decoder(prev_output_tokens, encoder_out=encoder_out, **options)

    def train(self, mode: bool = True) -> T2017Transformer:
        """Switch between training and evaluation, which fairseq does before every update.

        Raises:
            UsageError: to training, in one of several processes that a launcher started and fairseq did not join.
        """
        if mode:
            refuse_unjoined_processes()
        return super().train(mode)

    def prepare_for_inference_(self, cfg: Any) -> None:
        """Get ready for fairseq-generate and fairseq-interactive, which call this before they search.

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
        """Load a trained model as fairseq's other models are, with the paper's beam 4 and alpha 0.6 as defaults.

        Keywords override settings saved in the checkpoint (``bpe="subword_nmt"``, ``bpe_codes=...``,
        ``tokenizer="moses"``, ``lenpen=...``).
        """
        return load_hub_interface(model_name_or_path, checkpoint_file, data_name_or_path, **kwargs)


def longest_sentence(config: Model) -> int | None:
    """Return the tokens that learned positions end at; None for sinusoids, which never end."""
    return config.max_learned_positions if config.positions == "learned" else None


def refuse_longer(tokens: Tensor, longest: int | None) -> None:
    """Refuse a batch with a sentence that learned positions do not reach.

    Shape:
        tokens: (B, T)
    Raises:
        UsageError: there is one.
    """
    if longest is not None and tokens.size(1) > longest:
        raise UsageError(
            f"a sentence of {tokens.size(1)} tokens, but the learned positions end at {longest}: "
            "train with a larger --max-learned-positions or with --positions sinusoid, or shorten the sentence"
        )


def memory_of(encoder_out: dict[str, list[Tensor]]) -> tuple[Tensor, Tensor]:
    """Return the encoder's output and what of it is padding. Shape: -> (B, S, d_model), (B, 1, 1, S)."""
    return encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0][:, None, None, :]


@contextmanager
def inner_states(layers: nn.ModuleList, wanted: bool) -> Iterator[list[Tensor]]:
    """Collect what enters the first layer and what leaves each, while the block runs. Shape: (B, T, d_model)."""
    states: list[Tensor] = []
    hooks = []
    if wanted:
        hooks.append(layers[0].register_forward_pre_hook(lambda layer, inputs: states.append(inputs[0])))
        hooks += [
            layer.register_forward_hook(lambda layer, inputs, outputs: states.append(outputs[0])) for layer in layers
        ]
    try:
        yield states
    finally:
        for hook in hooks:
            hook.remove()
