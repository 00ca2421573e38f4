"""Makes trees up from a small grammar: for when there is no treebank. It is no English, and every output says so."""

from __future__ import annotations

import random

from nltk.tree import Tree

NOTE = (
    "GENERATED TREES: no treebank was named, so these trees come from a small grammar and are no English; their scores "
    "say only that the steps work."
)
# A rule is drawn by its weight; deep trees draw the first rule of each list, which ends soon.
RULES: dict[str, list[tuple[int, tuple[str, ...]]]] = {
    "S": [(6, ("NP", "VP", ".")), (1, ("PP", ",", "NP", "VP", "."))],
    "CLAUSE": [(1, ("NP", "VP"))],
    "NP": [(4, ("DT", "NN")), (2, ("DT", "JJ", "NN")), (2, ("NNP",)), (2, ("NP", "PP")), (1, ("NP", "CC", "NP"))],
    "PP": [(1, ("IN", "NP"))],
    "VP": [(3, ("VBD", "NP")), (1, ("VBD",)), (2, ("VBD", "NP", "PP")), (1, ("VBD", "SBAR")), (1, ("MD", "VPB"))],
    "VPB": [(1, ("VB", "NP"))],
    "SBAR": [(1, ("IN", "CLAUSE"))],
}
LABELS = {"CLAUSE": "S", "VPB": "VP"}
MARKS = {".": ".", ",": ","}
STEMS = {"DT": 4, "NN": 60, "NNP": 30, "JJ": 20, "IN": 8, "CC": 2, "VBD": 30, "VB": 20, "MD": 3}
ENDINGS = {"NN": "or", "JJ": "ic", "VBD": "ed", "VB": "en", "NNP": ""}
SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "ve")
DEEPEST = 6


def vocabulary(random_state: random.Random) -> dict[str, list[str]]:
    """Invent words of each tag; no word has two tags."""
    seen: set[str] = set()
    invented: dict[str, list[str]] = {}
    for tag, size in STEMS.items():
        invented[tag] = []
        while len(invented[tag]) < size:
            word = "".join(random_state.choices(SYLLABLES, k=random_state.randint(1, 2))) + ENDINGS.get(tag, "")
            word = word.capitalize() if tag == "NNP" else word
            if word.casefold() not in seen:
                seen.add(word.casefold())
                invented[tag].append(word)
    return invented


def trees(count: int, seed: int = 1) -> list[Tree]:
    """Draw trees of which no two have the same words; the same seed gives the same trees."""
    random_state = random.Random(seed)
    words = vocabulary(random_state)
    drawn: dict[tuple[str, ...], Tree] = {}
    while len(drawn) < count:
        tree = _expand("S", words, random_state, 0)
        drawn[tuple(tree.leaves())] = tree
    return list(drawn.values())


def _expand(symbol: str, words: dict[str, list[str]], random_state: random.Random, depth: int) -> Tree:
    if symbol in MARKS:
        return Tree(symbol, [MARKS[symbol]])
    if symbol not in RULES:
        return Tree(symbol, [random_state.choice(words[symbol])])
    rules = RULES[symbol] if depth < DEEPEST else RULES[symbol][:1]
    (chosen,) = random_state.choices([rule for _, rule in rules], [weight for weight, _ in rules])
    return Tree(LABELS.get(symbol, symbol), [_expand(part, words, random_state, depth + 1) for part in chosen])
