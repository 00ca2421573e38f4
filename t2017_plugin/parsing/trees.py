"""Bracketed trees: read, written, cleaned and drawn.

    ( (S (NP-SBJ (NNP Mr.) (NNP Vinken)) (VP (VBZ is) (NP-PRD (NN chairman))) (. .)))

A tree is an ``nltk.Tree``: its leaves are words, each the only child of its part-of-speech tag.
Brackets inside a word would end it, so they stand as ``-LRB-`` and ``-RRB-``, as the Penn Treebank
itself writes them. No function here is recursive, so trees may be of any depth.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from nltk.tree import Tree
from nltk.tree.prettyprinter import TreePrettyPrinter

from t2017_plugin.errors import UsageError
from t2017_plugin.files import read_lines
from t2017_plugin.parsing.symbols import without_function_tags

ESCAPES = {"(": "-LRB-", ")": "-RRB-"}
BRACKET = re.compile(r"[()]")
TOKEN = re.compile(r"[()]|[^()\s]+")
TRACE = "-NONE-"
TOPS = ("", "TOP", "ROOT", "S1")
# For the rare top that holds several trees: the treebank's own label for what has none.
UNLABELLED = "X"


def escape(word: str) -> str:
    """Write the round brackets of a word as the treebank does, so that the word can stand in a tree."""
    return BRACKET.sub(lambda found: ESCAPES[found[0]], word)


def is_preterminal(node: Tree | str) -> bool:
    """Return whether a node is a part-of-speech tag over its word."""
    return isinstance(node, Tree) and len(node) == 1 and isinstance(node[0], str)


def read_trees(path: str | os.PathLike[str]) -> list[Tree]:
    """Read all trees of a file, however they are laid out: over several lines, several on a line, blank lines between.

    Raises:
        UsageError: the file cannot be read or holds something that is no tree; the line is named.
    """
    return trees_of(read_lines(path), str(path))


def trees_of(lines: list[str], where: str) -> list[Tree]:
    """Read all trees of lines that come from ``where``, as :func:`read_trees` does.

    Raises:
        UsageError: there is something that is no tree; the line is named.
    """
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
    """Return the tags of a tree with their words, from left to right."""
    return [node for node in nodes(tree) if is_preterminal(node)]


def words(tree: Tree) -> list[str]:
    """Return the words of a tree as it writes them."""
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
    """Find the ``.mrg`` files below a folder, in the order of their names.

    Raises:
        UsageError: the folder is missing or holds none.
    """
    if not Path(folder).is_dir():
        raise UsageError(f"{folder} is not a folder; name the treebank's folder, which holds wsj_*.mrg files")
    found = sorted(Path(folder).rglob("*.mrg"), key=lambda path: (path.name, str(path)))
    if not found:
        raise UsageError(f"{folder} holds no .mrg file; name the treebank's folder, which holds wsj_*.mrg files")
    return found


def without_top(tree: Tree) -> Tree:
    """Take off the outermost bracket if it is unlabelled, TOP, ROOT or S1 and holds one tree."""
    while tree.label() in TOPS and len(tree) == 1 and isinstance(tree[0], Tree):
        tree = tree[0]
    return tree


def clean(tree: Tree) -> Tree | None:
    """Copy a tree as parsers are trained and scored on it; None if no word is left.

    The copy lacks traces and the constituents they leave empty, function tags, and the outermost bracket:

        ( (S (NP-SBJ-1 (NNP Mr.)) (VP (VBD left) (NP (-NONE- *-1)))))  ->  (S (NP (NNP Mr.)) (VP (VBD left)))

    Everything else stays: unary chains, a constituent inside one of the same label, punctuation,
    tags and words. A top over several trees is labelled X.
    """
    root = Tree("", [])
    # Nodes whose children are still to be copied, with the copy; what has been left empty goes afterwards.
    todo = [(tree, root)]
    made: list[tuple[Tree, Tree]] = []
    while todo:
        node, parent = todo.pop()
        if is_preterminal(node):
            if node.label() != TRACE:
                parent.append(Tree(node.label(), [node[0]]))
            continue
        copy = Tree(without_function_tags(node.label()), [])
        parent.append(copy)
        made.append((parent, copy))
        todo += [(child, copy) for child in reversed(node)]
    # A child was made after its parent, so from the end every node has lost its empty children before its turn.
    for parent, copy in reversed(made):
        if not copy:
            # By identity: equal nodes may stand beside it.
            del parent[next(place for place, node in enumerate(parent) if node is copy)]
    if not root:
        return None
    cleaned = without_top(root)
    if cleaned.label() in TOPS:
        cleaned.set_label(UNLABELLED)
    return cleaned


def right_branching(tree: Tree) -> Tree:
    """Branch to the right over a tree's own words and tags: ``(S (DT the) (NP (NN cat) (VBD sat)))``.

    This is the baseline that needs no model: an NP from every word to the end of the sentence.
    """
    leaves = [Tree(leaf.label(), [leaf[0]]) for leaf in preterminals(tree)]
    root = node = Tree("S", [leaves[0]])
    for place, leaf in enumerate(leaves[1:], start=1):
        if place < len(leaves) - 1:
            inner = Tree("NP", [leaf])
            node.append(inner)
            node = inner
        else:
            node.append(leaf)
    return root


def as_text(tree: Tree) -> str:
    """Draw a tree with lines of text, its words at the bottom (nltk's drawing)."""
    drawn: str = TreePrettyPrinter(tree).text(unicodelines=True)
    return drawn.rstrip("\n")


def as_svg(tree: Tree) -> str:
    """Draw a tree as an SVG document (nltk's drawing)."""
    drawn: str = TreePrettyPrinter(tree).svg()
    return drawn if drawn.lstrip().startswith("<?xml") else '<?xml version="1.0" encoding="UTF-8"?>\n' + drawn + "\n"


def write_png(tree: Tree, path: Path) -> None:
    """Draw a tree as a PNG picture: words in a row at the bottom, each label above the middle of what it spans."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    places, lines = _layout(tree)
    width = 1 + max(x for x, _, _ in places)
    height = 1 - min(y for _, y, _ in places)
    figure = Figure(figsize=(max(2.0, 0.9 * width), max(1.5, 0.6 * height)))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    for (x, y), (to_x, to_y) in lines:
        axes.plot((x, to_x), (y, to_y), color="0.6", linewidth=1, zorder=1)
    for x, y, text in places:
        # A dollar sign would begin a formula.
        label = axes.text(x, y, text.replace("$", r"\$"), ha="center", va="center", fontsize=10, zorder=2)
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.5})
    axes.set_xlim(-0.7, width - 0.3)
    axes.set_ylim(0.5 - height, 0.6)
    figure.savefig(path, format="png", dpi=100)


def _layout(tree: Tree) -> tuple[list[tuple[float, float, str]], list[tuple[tuple[float, float], tuple[float, float]]]]:
    """Find the place and text of every node and word, and the lines between them."""
    order: list[tuple[Tree | str, int, int]] = []  # node, depth, its parent's place in this list; parents come first
    children: dict[int, list[int]] = {}
    todo: list[tuple[Tree | str, int, int]] = [(tree, 0, -1)]
    while todo:
        node, depth, parent = todo.pop()
        children.setdefault(parent, []).append(len(order))
        if isinstance(node, Tree):
            todo += [(child, depth + 1, len(order)) for child in reversed(node)]
        order.append((node, depth, parent))
    x, word = [0.0] * len(order), 0
    for place in range(len(order)):
        if place not in children:
            x[place], word = float(word), word + 1
    for place in reversed(range(len(order))):
        if place in children:
            x[place] = (x[children[place][0]] + x[children[place][-1]]) / 2
    deepest = max(depth for _, depth, _ in order)
    y = [-float(deepest if isinstance(node, str) else depth) for node, depth, _ in order]
    places = [(x[i], y[i], node if isinstance(node, str) else node.label()) for i, (node, _, _) in enumerate(order)]
    lines = [((x[parent], y[parent]), (x[i], y[i])) for i, (_, _, parent) in enumerate(order) if parent >= 0]
    return places, lines
