"""The version of the plugin: the one place where it is written (``setup.py`` reads this file)."""

__version__ = "0.1.0"
