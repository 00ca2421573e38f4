"""Pictures of trees: as text for a terminal and as SVG by nltk, as PNG by matplotlib."""

from __future__ import annotations

from pathlib import Path

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
    """Place and text of every node and word, and the lines between them; without recursion, for trees of any depth."""
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
