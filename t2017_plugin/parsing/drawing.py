"""Pictures of trees, by nltk: as text for a terminal, and as SVG."""

from __future__ import annotations

from nltk.tree import Tree
from nltk.tree.prettyprinter import TreePrettyPrinter


def as_text(tree: Tree) -> str:
    """Draw a tree with lines of text, its words at the bottom."""
    drawn: str = TreePrettyPrinter(tree).text(unicodelines=True)
    return drawn.rstrip("\n")


def as_svg(tree: Tree) -> str:
    """Draw a tree as an SVG document."""
    drawn: str = TreePrettyPrinter(tree).svg()
    return drawn if drawn.lstrip().startswith("<?xml") else '<?xml version="1.0" encoding="UTF-8"?>\n' + drawn + "\n"
