"""The corpus of the demo: texts under the same key, filters, groups kept apart, near-duplicates taken out."""

import hashlib
import json
import random
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipes.common import parallel_corpus
from recipes.common.generated_corpus import pairs as generated_pairs
from recipes.common.parallel_corpus import Filters, Pair, build, masked, reason_to_drop, split_alike, split_of_group
from recipes.demo import home_assistant
from recipes.toy_reversal import reversal

pytestmark = pytest.mark.unit

SHARES = {"test": 0.1, "valid": 0.1}
# Names whose hashes fall into each split, found once; the tests below check that they still do.
GROUPS = {
    split: [name for name in (f"group{i}" for i in range(300)) if split_of_group(name, SHARES) == split]
    for split in ("train", "valid", "test")
}


def make_wheel(path: Path, components: dict[str, dict[str, object]]) -> Path:
    """Write a wheel with ``{component: {language: content}}``."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("homeassistant/__init__.py", "")
        archive.writestr("homeassistant/components/hue/strings.json", "{}")
        for component, languages in components.items():
            for language, content in languages.items():
                text = content if isinstance(content, str) else json.dumps(content)
                archive.writestr(f"homeassistant/components/{component}/translations/{language}.json", text)
    return path


def test_texts_pair_up_by_key_and_not_by_place(tmp_path):
    english = {"title": "The lamp", "state": {"on": "On", "off": "Off", "only_here": "x"}, "odd": {"a": "A"}, "n": 3}
    german = {"state": {"off": "Aus", "on": "An", "only_there": "y"}, "odd": "Text", "title": "Die Lampe", "n": 3}
    wheel = make_wheel(tmp_path / "w.whl", {"hue": {"en": english, "de": german}, "cast": {"en": {"a": "b"}}})
    assert list(home_assistant.read_pairs(wheel, "en", "de")) == [
        Pair("hue", "The lamp", "Die Lampe"),
        Pair("hue", "On", "An"),
        Pair("hue", "Off", "Aus"),
    ]


def test_components_come_in_order_of_name(tmp_path):
    content = {"en": {"a": "one"}, "de": {"a": "eins"}}
    wheel = make_wheel(tmp_path / "w.whl", {"b": content, "c": content, "a": content})
    assert [pair.group for pair in home_assistant.read_pairs(wheel, "en", "de")] == ["a", "b", "c"]


def test_what_is_not_the_wheel_is_told_in_one_line(tmp_path):
    broken = tmp_path / "broken.whl"
    broken.write_bytes(b"PK\x03\x04 half a file")
    other = make_wheel(tmp_path / "other.whl", {"hue": {"en": {"a": "b"}}})
    no_json = make_wheel(tmp_path / "no_json.whl", {"hue": {"en": "{", "de": {"a": "b"}}})
    messages = {broken: "not a readable wheel", other: "no component", no_json: "hue/translations/en.json"}
    for wheel, message in messages.items():
        with pytest.raises(SystemExit, match=message) as error:
            list(home_assistant.read_pairs(wheel, "en", "de"))
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("One thing. Another one.", "Eines. Noch eines.", [("One thing.", "Eines."), ("Another one.", "Noch eines.")]),
        ("One thing. Another one.", "Eines und noch eines.", [("One thing. Another one.", "Eines und noch eines.")]),
        ("First line\n\nSecond", "Erste Zeile\nZweite", [("First line", "Erste Zeile"), ("Second", "Zweite")]),
        ("a\tb  c", "d\u00a0e", [("a b c", "d e")]),
        ("Version 2.5 of it", "Version 2.5 davon", [("Version 2.5 of it", "Version 2.5 davon")]),
    ],
)
def test_sentences_are_cut_only_where_both_sides_are(source, target, expected):
    assert split_alike(source, target) == expected


PIECES = ["a.", "B", "c!", "D?", "x\n", "\u2028y", "“Z", "{p}", "3.5"]
WORDS = st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join)


@settings(deadline=None)  # machines are shared; time is no property
@given(WORDS, WORDS)
def test_cutting_loses_no_word(source, target):
    pieces = split_alike(source, target)
    assert " ".join(one for one, _ in pieces).split() == source.split()
    assert " ".join(other for _, other in pieces).split() == target.split()
    assert all("\n" not in side for piece in pieces for side in piece)


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("one two three", "eins zwei drei", None),
        ("one two three", "", "empty side"),
        ("one two three", "one two three", "sides are equal"),
        ("one two", "eins zwei drei", "shorter than 3 words"),
        ("w " * 60, "v " * 60, None),
        ("w " * 61, "v " * 60, "longer than 60 words"),
        ("w " * 22, "v " * 10, None),
        ("w " * 23, "v " * 10, "length ratio above 2.2"),
    ],
)
def test_filters_at_their_limits(source, target, reason):
    assert reason_to_drop(source, target, Filters()) == reason


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Turn on lamp 3", "turn on LAMP 12"),
        ("Failed: {error}", "failed {reason}."),
        ("Wait 1.5 seconds!", "Wait 30 seconds"),
        ("See [docs](https://a.b/c)", "See [docs](http://x.y)"),
    ],
)
def test_numbers_placeholders_case_and_punctuation_make_no_new_sentence(one, other):
    assert masked(one) == masked(other)


def test_words_do_make_a_new_sentence():
    assert masked("Turn on the lamp") != masked("Turn off the lamp")


def test_near_duplicates_leave_valid_and_test_but_not_train():
    train, valid, test = (GROUPS[split][0] for split in ("train", "valid", "test"))
    corpus = build(
        [
            Pair(train, "Turn on lamp 1", "Lampe 1 einschalten bitte"),
            Pair(train, "Turn on lamp 2", "Lampe 2 einschalten bitte"),
            Pair(valid, "turn on lamp 33", "Ganz andere Worte hier"),
            Pair(valid, "Close the blue door", "Die blaue Tür schließen"),
            Pair(test, "Something else {here}", "Lampe 9 einschalten bitte"),
            Pair(test, "Close the blue door!", "Mach die Tür zu"),
            Pair(test, "Open the big window", "Das große Fenster öffnen"),
        ],
        Filters(),
        SHARES,
    )
    kept = {split: [pair.source for pair in pairs] for split, pairs in corpus.pairs.items()}
    assert kept["train"] == ["Turn on lamp 1", "Turn on lamp 2"]
    assert kept["valid"] == ["Close the blue door"]
    assert kept["test"] == ["Open the big window"]
    assert sum(corpus.left_out.values()) == 3


PAIRS = st.lists(
    st.builds(
        Pair,
        st.sampled_from(GROUPS["train"][:4] + GROUPS["valid"][:2] + GROUPS["test"][:2]),
        st.lists(st.sampled_from("on off lamp door 1 22 {x} Red".split()), min_size=1, max_size=5).map(" ".join),
        st.lists(st.sampled_from("an aus Lampe Tür 1 22 {x} rot".split()), min_size=1, max_size=5).map(" ".join),
    ),
    max_size=40,
)


@settings(deadline=None)  # machines are shared; time is no property
@given(PAIRS)
def test_no_group_and_no_sentence_stands_in_two_splits(raw):
    corpus = build(raw, Filters(), SHARES)
    seen_groups, seen_sources, seen_targets = set(), set(), set()
    for pairs in corpus.pairs.values():
        groups, sources = {pair.group for pair in pairs}, {masked(pair.source) for pair in pairs}
        targets = {masked(pair.target) for pair in pairs}
        assert not groups & seen_groups and not sources & seen_sources and not targets & seen_targets
        seen_groups, seen_sources, seen_targets = seen_groups | groups, seen_sources | sources, seen_targets | targets
    every = [pair.source.casefold() for pairs in corpus.pairs.values() for pair in pairs]
    assert len(every) == len(set(every))
    assert len(every) + sum(corpus.left_out.values()) == len(raw)  # nothing is lost without a reason


@settings(deadline=None)  # machines are shared; time is no property
@given(PAIRS, st.randoms())
def test_the_order_of_groups_does_not_matter(raw, random_state):
    groups = sorted({pair.group for pair in raw})
    random_state.shuffle(groups)
    shuffled = [pair for group in groups for pair in raw if pair.group == group]
    assert build(shuffled, Filters(), SHARES) == build(raw, Filters(), SHARES)


def test_shares_of_groups_are_about_what_was_asked():
    names = [f"component {number}" for number in range(4000)]
    share = sum(split_of_group(name, SHARES) == "test" for name in names) / len(names)
    assert abs(share - 0.1) < 0.02  # four standard deviations of a share of 4000 drawn at 0.1


def test_files_and_manifest_say_the_same(tmp_path, capsys):
    corpus = build(generated_pairs(3000), Filters(), SHARES)
    parallel_corpus.write_with_manifest(corpus, tmp_path / "corpus", "en", "de", {"corpus": "made up"})
    manifest = json.loads((tmp_path / "corpus" / "corpus.json").read_text(encoding="utf-8"))
    assert manifest["corpus"] == "made up"
    for split in ("train", "valid", "test"):
        for language in ("en", "de"):
            content = (tmp_path / "corpus" / f"{split}.{language}").read_bytes()
            assert content.count(b"\n") == manifest["splits"][split]["pairs"] > 0
            assert hashlib.sha256(content).hexdigest() == manifest["splits"][split][language]["sha256"]
    assert sorted(path.name for path in (tmp_path / "corpus").iterdir())[0] == "corpus.json"  # no partial file is left
    assert "train: " in capsys.readouterr().out


def test_an_empty_split_is_refused(tmp_path):
    corpus = build([Pair(GROUPS["train"][0], "one two three", "eins zwei drei")], Filters(), SHARES)
    with pytest.raises(SystemExit, match="no pair is left for valid"):
        parallel_corpus.write_with_manifest(corpus, tmp_path, "en", "de", {})


def test_the_demo_from_a_wheel_to_files(tmp_path):
    random_state = random.Random(0)
    english, german = "red blue door lamp on off open the a".split(), "rot blau Tür Lampe an aus auf die eine".split()
    words = {"en": english, "de": german}
    components = {}
    for number in range(60):
        drawn = [[random_state.randrange(9) for _ in range(6)] for _ in range(5)]
        components[f"part{number}"] = {
            language: {str(key): " ".join(words[language][i] for i in indices) for key, indices in enumerate(drawn)}
            for language in words
        }
    wheel = make_wheel(tmp_path / "w.whl", components)
    home_assistant.main(["--wheel", str(wheel), "--output", str(tmp_path / "corpus")])
    manifest = json.loads((tmp_path / "corpus" / "corpus.json").read_text(encoding="utf-8"))
    assert manifest["sha256"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    kept = sum(split["pairs"] for split in manifest["splits"].values())
    assert kept + sum(manifest["left_out"].values()) == 300


def test_the_toy_reverses_and_repeats_nothing():
    corpus = reversal.build({"train": 500, "valid": 50, "test": 50}, shortest=3, longest=6)
    assert [len(pairs) for pairs in corpus.pairs.values()] == [500, 50, 50]
    everything = [pair for pairs in corpus.pairs.values() for pair in pairs]
    assert all(pair.source.split() == pair.target.split()[::-1] for pair in everything)
    assert len({pair.source for pair in everything}) == 600
    assert {len(pair.source.split()) for pair in everything} == {3, 4, 5, 6}


def test_the_generated_corpus_says_so_and_is_the_same_each_time(tmp_path):
    from recipes.common import generated_corpus

    generated_corpus.main(["--output", str(tmp_path), "--pairs", "4000"])
    manifest = json.loads((tmp_path / "corpus.json").read_text(encoding="utf-8"))
    assert "GENERATED" in manifest["note"] and "not a language" in manifest["corpus"]
    assert list(generated_pairs(50)) == list(generated_pairs(50)) != list(generated_pairs(50, seed=2))
