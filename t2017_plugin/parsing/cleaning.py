"""Trees as parsers are trained and scored on them: without traces, function tags and the outermost bracket.

    ( (S (NP-SBJ-1 (NNP Mr.)) (VP (VBD left) (NP (-NONE- *-1)))))  ->  (S (NP (NNP Mr.)) (VP (VBD left)))

Everything else stays: unary chains, a constituent inside one of the same label, punctuation, words as they are.
"""

from __future__ import annotations

import re

from nltk.tree import Tree

from t2017_plugin.parsing.treebank import is_preterminal

TRACE = "-NONE-"
TOPS = ("", "TOP", "ROOT", "S1")
# For the rare top that holds several trees: the treebank's own label for what has none.
UNLABELLED = "X"
FUNCTION_TAG = re.compile(r"(?<=.)[-=].*")


def without_function_tags(label: str) -> str:
    """``NP-SBJ-1`` becomes ``NP``; a label that begins with a hyphen, such as ``-LRB-``, stays."""
    return label if label.startswith("-") else FUNCTION_TAG.sub("", label)


def without_top(tree: Tree) -> Tree:
    """Take off the outermost bracket if it is unlabelled, TOP, ROOT or S1 and holds one tree."""
    while tree.label() in TOPS and len(tree) == 1 and isinstance(tree[0], Tree):
        tree = tree[0]
    return tree


def clean(tree: Tree) -> Tree | None:
    """A new tree without traces, constituents they leave empty, function tags and the top; None if no word is left.

    Tags are not changed. A top over several trees is labelled X.
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
    # A child was made after its parent, so from the end every node's own emptiness is settled before it is judged.
    for parent, copy in reversed(made):
        if not copy:
            _remove(parent, copy)
    if not root:
        return None
    cleaned = without_top(root)
    if cleaned.label() in TOPS:
        cleaned.set_label(UNLABELLED)
    return cleaned


def _remove(parent: Tree, child: Tree) -> None:
    """Take a child out by identity: equal ones may stand beside it."""
    del parent[next(place for place, node in enumerate(parent) if node is child)]
