"""Reading and writing bracketed trees: Penn Treebank files and files of one tree a line.

    ( (S (NP-SBJ (NNP Mr.) (NNP Vinken)) (VP (VBZ is) (NP-PRD (NN chairman))) (. .)))

A tree is an ``nltk.Tree``: its leaves are words, each the only child of its part-of-speech tag. Brackets inside a word
would end it, so they stand as ``-LRB-`` and ``-RRB-``, as the treebank itself writes them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from nltk.tree import Tree

from t2017_plugin.errors import UsageError
from t2017_plugin.files import read_lines

ESCAPES = {"(": "-LRB-", ")": "-RRB-"}
BRACKET = re.compile(r"[()]")
TOKEN = re.compile(r"[()]|[^()\s]+")


def escape(word: str) -> str:
    """Write the round brackets of a word as the treebank does, so that the word can stand in a tree."""
    return BRACKET.sub(lambda found: ESCAPES[found[0]], word)


def is_preterminal(node: Tree | str) -> bool:
    """Whether a node is a part-of-speech tag over its word."""
    return isinstance(node, Tree) and len(node) == 1 and isinstance(node[0], str)


def read_trees(path: str | os.PathLike[str]) -> list[Tree]:
    """Read all trees of a file, however they are laid out: over several lines, several on a line, blank lines between.

    Raises:
        UsageError: the file cannot be read or holds something that is no tree; the line is named.
    """
    return trees_of(read_lines(path), str(path))


def trees_of(lines: list[str], where: str) -> list[Tree]:
    """The same for lines that were read from ``where``."""
    return [tree_of(text, f"{where}, line {line}") for line, text in _bracketed(lines, f"{where}, line ")]


def read_tree_lines(path: str | os.PathLike[str]) -> list[list[Tree]]:
    """Read a file of one tree a line, so that files of the same sentences stay aligned.

    A blank line gives an empty list, and a line of several trees, which a parser may leave, all of them.

    Raises:
        UsageError: the file cannot be read, or a line holds something that is no tree; the line is named.
    """
    lines = [(line, f"{path}, line {number}") for number, line in enumerate(read_lines(path), start=1)]
    return [[tree_of(text, where) for _, text in _bracketed([line], where, "")] for line, where in lines]


def tree_of(text: str, where: str = "the tree") -> Tree:
    """Read one tree.

    Raises:
        UsageError: the text is no tree, or more than one, or a word has no tag of its own; ``where`` is named.
    """
    # nltk's own reader takes a backslash for an escape and refuses deep trees.
    outermost: list[Tree] = []
    stack: list[Tree] = []
    tokens = TOKEN.findall(text)
    for place, token in enumerate(tokens):
        if token == "(":
            stack.append(Tree("", []))
            (stack[-2] if len(stack) > 1 else outermost).append(stack[-1])
        elif not stack:
            break
        elif token == ")":
            _check(stack.pop(), where)
        elif tokens[place - 1] == "(":
            stack[-1].set_label(token)
        else:
            stack[-1].append(token)
    if stack or len(outermost) != 1 or tokens[-1] != ")":
        raise UsageError(f"{where}: not one bracketed tree: {' '.join(tokens)[:60]!r}; every ( needs its )")
    return outermost[0]


def _check(node: Tree, where: str) -> None:
    if is_preterminal(node):
        return
    word = next((child for child in node if isinstance(child, str)), None)
    if word is not None:
        raise UsageError(f"{where}: the word {word!r} has no tag of its own; write (TAG {word})")


def nodes(tree: Tree) -> Iterator[Tree]:
    """Yield a tree and all trees in it, each before what it holds, from left to right; deep trees too."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack += [child for child in reversed(node) if isinstance(child, Tree)]


def preterminals(tree: Tree) -> list[Tree]:
    """The tags of a tree with their words, from left to right."""
    return [node for node in nodes(tree) if is_preterminal(node)]


def words(tree: Tree) -> list[str]:
    """The words of a tree as it writes them."""
    return [node[0] for node in preterminals(tree)]


def one_line(tree: Tree) -> str:
    """Write a tree on one line, ``(S (NP (NN fish)) (VP (VBP swim)))``; round brackets in words and labels escaped."""
    written: list[str] = []
    stack: list[Tree | str] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            written.append(node)
        elif is_preterminal(node):
            written.append(f" ({escape(node.label())} {escape(node[0])})")
        else:
            written.append(f" ({escape(node.label())}")
            stack.append(")")
            stack += reversed(node)
    return "".join(written).strip()


def _bracketed(lines: list[str], where: str, numbered: str = "{}") -> Iterator[tuple[int, str]]:
    """Yield each text from a ( to its ) with the number (from 1) of the line it begins on."""

    def place(number: int) -> str:
        return where + numbered.format(number)

    depth, began, text = 0, 0, ""
    for number, line in enumerate(lines, start=1):
        start = 0
        for found in BRACKET.finditer(line):
            if found[0] == "(":
                if not depth:
                    _only_space(line[start : found.start()], place(number))
                    began, start = number, found.start()
                depth += 1
            else:
                depth -= 1
                if depth < 0:
                    raise UsageError(f"{place(number)}: a ) without its (")
                if not depth:
                    yield began, text + line[start : found.end()]
                    text, start = "", found.end()
        if depth:
            text += line[start:] + "\n"
        else:
            _only_space(line[start:], place(number))
    if depth:
        raise UsageError(f"{place(began)}: the tree that begins here has no end; every ( needs its )")


def _only_space(text: str, where: str) -> None:
    if text.strip():
        raise UsageError(f"{where}: {text.strip()[:40]!r} stands outside of a tree")


def treebank_files(folder: str | os.PathLike[str]) -> list[Path]:
    """The ``.mrg`` files below a folder, in the order of their names.

    Raises:
        UsageError: the folder is missing or holds none.
    """
    if not Path(folder).is_dir():
        raise UsageError(f"{folder} is not a folder; name the treebank's folder, which holds wsj_*.mrg files")
    found = sorted(Path(folder).rglob("*.mrg"), key=lambda path: (path.name, str(path)))
    if not found:
        raise UsageError(f"{folder} holds no .mrg file; name the treebank's folder, which holds wsj_*.mrg files")
    return found
