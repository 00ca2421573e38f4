"""Imported by fairseq itself under ``--user-dir``; also the name old checkpoints may hold."""

from t2017_plugin.fairseq_side.tasks import T2017TranslationConfig, T2017TranslationTask

__all__ = ["T2017TranslationConfig", "T2017TranslationTask"]
