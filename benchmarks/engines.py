"""The weights of a stock ``transformer`` in CTranslate2, for the benchmark of decoding."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from t2017_plugin.paper.config import TRANSLATION_SEARCH as SEARCH


def ctranslate2_arm(
    stock: Any, dictionary: Any, sources: list[Tensor], folder: Path, limit: int, written: int | None
) -> Callable[[], list[list[int]]]:
    """Translate all sources with CTranslate2 in float32: beam 4, length^0.6, in batches or one by one.

    Args:
        limit: tokens of a batch; 0 is one sentence at a time
        written: exactly as many tokens with EOS, for weights that are not trained
    """
    import ctranslate2

    convert(stock, dictionary, folder)
    engine = ctranslate2.Translator(
        str(folder), device="cpu", compute_type="float32", inter_threads=1, intra_threads=torch.get_num_threads()
    )
    texts = [[dictionary[int(token)] for token in source] for source in sources]
    lengths = {"max_decoding_length": 256}
    if written is not None:
        lengths = {"max_decoding_length": written, "min_decoding_length": written}
    options = {"beam_size": SEARCH.beam, "length_penalty": SEARCH.alpha, **lengths}

    def turn() -> list[list[int]]:
        if limit:
            results = engine.translate_batch(texts, max_batch_size=limit, batch_type="tokens", **options)
        else:
            results = [engine.translate_batch([text], **options)[0] for text in texts]
        return [[dictionary.index(symbol) for symbol in result.hypotheses[0]] for result in results]

    return turn


def convert(stock: Any, dictionary: Any, folder: Path) -> None:
    """Write a stock model with one shared table as a CTranslate2 model."""
    from ctranslate2.specs import common_spec, transformer_spec

    encoder, decoder = stock.encoder, stock.decoder
    heads = encoder.layers[0].self_attn.num_heads
    spec = transformer_spec.TransformerSpec.from_config(
        (len(encoder.layers), len(decoder.layers)), heads, pre_norm=False, activation=common_spec.Activation.RELU
    )
    for side, module in ((spec.encoder, encoder), (spec.decoder, decoder)):
        side.scale_embeddings = True
        side.position_encodings.encodings = _positions(module)
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = _array(encoder.embed_tokens.weight)
    spec.decoder.projection.weight = _array(decoder.output_projection.weight)
    for to, layer in zip(spec.encoder.layer, encoder.layers, strict=True):
        _self_attention(to.self_attention, layer)
        _feed_forward(to.ffn, layer)
    for to, layer in zip(spec.decoder.layer, decoder.layers, strict=True):
        _self_attention(to.self_attention, layer)
        across = layer.encoder_attn
        _linear(to.attention.linear[0], [across.q_proj])
        _linear(to.attention.linear[1], [across.k_proj, across.v_proj])
        _linear(to.attention.linear[2], [across.out_proj])
        _norm(to.attention.layer_norm, layer.encoder_attn_layer_norm)
        _feed_forward(to.ffn, layer)
    symbols = list(dictionary.symbols)
    spec.register_source_vocabulary(symbols)
    spec.register_target_vocabulary(symbols)
    spec.config.bos_token = spec.config.decoder_start_token = spec.config.eos_token = "</s>"
    spec.config.unk_token = "<unk>"
    spec.validate()
    spec.optimize()
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def _array(tensor: Tensor) -> Any:
    return tensor.detach().float().numpy()


def _positions(module: Any) -> Any:
    positions = module.embed_positions
    return _array(positions.get_embedding(1026, positions.embedding_dim, positions.padding_idx)[2:])


def _linear(to: Any, modules: list[Any]) -> None:
    to.weight = _array(torch.cat([module.weight for module in modules]))
    to.bias = _array(torch.cat([module.bias for module in modules]))


def _norm(to: Any, module: Any) -> None:
    to.gamma, to.beta = _array(module.weight), _array(module.bias)


def _self_attention(to: Any, layer: Any) -> None:
    attention = layer.self_attn
    _linear(to.linear[0], [attention.q_proj, attention.k_proj, attention.v_proj])
    _linear(to.linear[1], [attention.out_proj])
    _norm(to.layer_norm, layer.self_attn_layer_norm)


def _feed_forward(to: Any, layer: Any) -> None:
    _linear(to.linear_0, [layer.fc1])
    _linear(to.linear_1, [layer.fc2])
    _norm(to.layer_norm, layer.final_layer_norm)
