"""Imported by fairseq itself under ``--user-dir``; also the name old checkpoints may hold."""

from t2017_plugin.fairseq_side.model import T2017Transformer

__all__ = ["T2017Transformer"]
