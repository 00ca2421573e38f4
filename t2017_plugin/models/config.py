"""Imported by fairseq itself under ``--user-dir``; also the name old checkpoints may hold."""

from t2017_plugin.fairseq_side.settings import T2017TransformerConfig

__all__ = ["T2017TransformerConfig"]
