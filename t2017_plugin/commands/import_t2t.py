"""``t2017 import-t2t``: a Tensor2Tensor model becomes a fairseq checkpoint with its dictionaries."""

from __future__ import annotations

import argparse
import shlex

from t2017_plugin.errors import UsageError
from t2017_plugin.t2t.import_model import CHECKPOINT, ImportOptions, ImportReport, import_model, model_flags

DESCRIPTION = """\
Turn a model that Tensor2Tensor trained into a folder with checkpoint.pt, dict.SRC.txt, dict.TGT.txt and
text_settings.json, which fairseq's commands and t2017 translate read. TensorFlow is not needed.

Sizes come from the variables' shapes; only the number of heads leaves no trace there (--heads). Models of all versions
are read, with and without biases in attention and target-space embedding, as long as norms stand after the sub-layers
(transformer_base until 1.2.4, transformer_base_v1 since). The dictionaries have T2T's ids: padding 0, EOS 1.

Without a vocabulary file the symbols of a dictionary are the ids themselves: text is lines such as "17 5 23".
The written model is loaded again and tried on a sentence before the folder appears.
"""
EPILOG = """\
examples:
  t2017 import-t2t train_dir --vocab vocab.bpe.32000 -s en -t de --output imported
  t2017 import-t2t model.ckpt-250000 --heads 16 --vocab vocab.bpe.32000 --bpe-codes bpe.32000 -s en -t de --output big
  t2017 import-t2t variables.npz -s en -t de --output imported
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``t2017 import-t2t``."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a checkpoint (model.ckpt-250000), its folder (the newest is taken), or an .npz of the variables",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="the folder to make")
    parser.add_argument("-s", "--source-lang", required=True, metavar="SRC", help="name of the source language")
    parser.add_argument("-t", "--target-lang", required=True, metavar="TGT", help="name of the target language")
    parser.add_argument("--heads", type=int, default=8, metavar="H", help="attention heads (default: %(default)s)")
    parser.add_argument("--vocab", metavar="FILE", help="T2T's vocabulary, one symbol per line, of both languages")
    parser.add_argument("--source-vocab", metavar="FILE", help="the source's vocabulary, where there are two")
    parser.add_argument("--target-vocab", metavar="FILE", help="the target's")
    parser.add_argument(
        "--bpe-codes", metavar="FILE", help="merges of subword-nmt: with them t2017 translate takes raw text"
    )
    parser.add_argument(
        "--sinusoid", choices=("t2t", "paper"), default="t2t", help="layout of the positions (default: %(default)s)"
    )
    parser.add_argument(
        "--target-space-id",
        type=int,
        default=9,
        metavar="N",
        help="T2T's number of the kind of target, in models with a target-space embedding: 9 German BPE (default), "
        "8 German and 6 French subwords",
    )
    parser.add_argument(
        "--source-rows", type=int, metavar="N", help="rows of the source's table, where two tables are called shared"
    )


def run(args: argparse.Namespace) -> int:
    """Import, and print what became of the variables."""
    report = import_model(args.model, args.output, import_options(args))
    print("\n".join(summary_lines(report, args)))
    return 0


def import_options(args: argparse.Namespace) -> ImportOptions:
    """Read the options of the import from the call.

    Raises:
        UsageError: vocabulary files exclude one another.
    """
    if args.vocab and (args.source_vocab or args.target_vocab):
        raise UsageError("--vocab is for both languages: leave it out, or --source-vocab and --target-vocab")
    return ImportOptions(
        source_lang=args.source_lang,
        target_lang=args.target_lang,
        heads=args.heads,
        sinusoid=args.sinusoid,
        target_space_id=args.target_space_id,
        source_rows=args.source_rows,
        source_vocab=args.vocab or args.source_vocab,
        target_vocab=args.vocab or args.target_vocab,
        bpe_codes=args.bpe_codes,
    )


def summary_lines(report: ImportReport, args: argparse.Namespace) -> list[str]:
    """Describe what was read and written, a line per fact."""
    source, settings = report.source, report.sizes.settings
    sizes = ", ".join(f"{name} {settings[name]}" for name in ("layers", "d_model", "d_ff", "heads", "d_k", "d_v"))
    switches = [name for name in ("attention_bias", "target_space_embedding") if settings[name]]
    described = ", ".join([sizes, f"embeddings {settings['embeddings']}", *switches])
    rows = f"{report.sizes.source_types:,}"
    if settings["embeddings"] != "shared":
        rows = f"{rows} source and {report.sizes.target_types:,} target"
    lines = [
        f"{source.name}: {len(source.variables)} variables, {source.updates:,} updates",
        f"model: {described}, {rows} rows",
        f"converted: {len(source.variables) - len(report.unused)} variables into {report.parameters:,} parameters",
    ]
    if source.bookkeeping:
        lines.append(f"left out: {len(source.bookkeeping)} of the training (optimiser slots, global_step)")
    if report.unused:
        lines.append(f"left out: {len(report.unused)} that are zero and not in the paper, such as {report.unused[0]}")
    for language, count in report.without_symbol.items():
        if count is None:
            lines.append(f"dict.{language}.txt: no vocabulary file, the symbols are ids")
        elif count:
            lines.append(f"dict.{language}.txt: {count:,} rows without a symbol have placeholders")
    reach = float(report.logits.abs().max())
    lines.append(f"{args.output}: written, loaded again and tried, the largest of its logits is {reach:.2f}")
    flags = shlex.join(["--finetune-from-model", f"{args.output}/{CHECKPOINT}", *model_flags(settings)])
    lines.append(f"to train it further: fairseq-train DATA --task t2017_translation {flags}")
    return lines
