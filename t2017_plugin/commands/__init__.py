"""The commands of ``t2017``, a module each.

A command module has ``SUMMARY`` (one line for ``t2017 --help``), ``add_arguments(parser)`` and ``run(args) ->
int``. It is found by its file name: ``user_dir.py`` is ``t2017 user-dir``. Its imports at module level are light;
what takes long to import belongs in ``run``.
"""
