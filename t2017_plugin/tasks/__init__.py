"""What fairseq imports by itself under ``--user-dir``: the files of this folder and of ``models``."""
