"""What can be had without a model: one S, and in it an NP from every word to the end of the sentence."""

from __future__ import annotations

from nltk.tree import Tree

from t2017_plugin.parsing.treebank import preterminals


def right_branching(tree: Tree) -> Tree:
    """Branch to the right over a tree's own words and tags: ``(S (DT the) (NP (NN cat) (VBD sat)))``."""
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
