"""``t2017_parsing``: English constituency parsing as translation into a linearised tree (section 6.3).

Source and target have a dictionary each. Search: beam 21, alpha 0.3, at most 300 tokens more than the source.
"""

from dataclasses import dataclass, field
from typing import Any

from fairseq.tasks import register_task

from t2017_plugin.fairseq_side.translation import T2017TranslationConfig, T2017TranslationTask

PARSING_GENERATION = {"beam": 21, "lenpen": 0.3, "min_len": -1}


@dataclass
class T2017ParsingConfig(T2017TranslationConfig):
    """The translation task's settings with the longer limit of section 6.3."""

    extra_length: int = field(
        default=300,
        metadata={"help": "generated tokens with EOS <= source tokens with EOS + this, for each sentence by itself"},
    )


@register_task("t2017_parsing", dataclass=T2017ParsingConfig)
class T2017ParsingTask(T2017TranslationTask):
    """Words in, linearised trees out; beam 21 and alpha 0.3 by default, flags given on the command line win."""

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Adds the task's flags and puts the paper's values for parsing in place of fairseq's defaults."""
        super().add_args(parser)
        parser.set_defaults(**PARSING_GENERATION)
