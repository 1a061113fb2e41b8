"""Segments against questions: passages in both languages, the formula, the splitting, what is refused."""

import re

import pytest
import torch
from typer.testing import CliRunner

import regard as rg
from regard import cli, datasets, plot
from regard.errors import ChoiceError, DtypeError, ShapeError, UnknownTextError
from regard.relation import Encoded, script_of, split

NAMES = {"en": "minilm", "zh": "words"}
LANGUAGES = pytest.mark.parametrize("language", ["en", "zh"])


class Letters:
    """An encoder for tests: how often each of the letters a to g comes in a text."""

    name = "letters"

    def encode(self, texts):
        states = torch.tensor([[float(text.count(letter)) for letter in "abcdefg"] for text in texts])
        unknown = tuple(tuple(word for word in text.split() if not set(word) & set("abcdefg")) for text in texts)
        return Encoded(states, unknown, tuple(len(text.split()) for text in texts))


SEGMENTS, QUESTIONS = ["ab", "bcc", "cde", "fga", "g"], ["abc", "ddg", "gef"]


@LANGUAGES
def test_each_question_finds_its_segment(language):
    told = datasets.passage(language, short=True)
    found = rg.relate(told.segments, told.questions)
    assert found.encoder.startswith(NAMES[language])
    assert [found.rank(answer, question) for question, answer in enumerate(told.answers)] == [1, 1]
    assert found.weights.shape == (2, 5)
    torch.testing.assert_close(found.weights.dense().sum(-1), torch.ones(2))


@LANGUAGES
def test_math_and_skipping_class_attend_to_each_other(language):
    segments = datasets.passage(language, short=True).segments
    for questions in (None, segments):
        weights = rg.relate(segments, questions).weights.dense()
        assert weights[1, 2] > weights[3, 2] and weights[1, 2] > weights[1, 3]
        assert weights[2, 1] > weights[2, 3] and weights[2, 1] > weights[3, 2]


@LANGUAGES
def test_the_father_wins_over_the_tempting_answer(language):
    told = datasets.passage(language)
    found = rg.relate(told.segments, told.questions)
    assert found.rank(told.answers[0]) == 1
    assert found.rank(told.tempting) == 2


def test_the_weights_are_the_formula():
    encoder = Letters()
    found = rg.relate(SEGMENTS, QUESTIONS, encoder, temperature=0.3)
    states, asked = encoder.encode(SEGMENTS).states, encoder.encode(QUESTIONS).states
    cosine = torch.nn.functional.cosine_similarity(asked[:, None], states[None], dim=-1)
    torch.testing.assert_close(found.weights.dense(), torch.softmax(cosine / 0.3, -1))
    torch.testing.assert_close(found.output, torch.softmax(cosine / 0.3, -1) @ states)
    assert found.encoder == "letters" and (found.segments, found.questions) == (tuple(SEGMENTS), tuple(QUESTIONS))


def test_a_relation_is_weights_with_labels():
    found = rg.relate(SEGMENTS, QUESTIONS, Letters())
    assert isinstance(found, rg.Weights) and found.shape == (len(found.questions), len(found.segments))
    assert torch.equal(found.dense(), found.weights.dense())
    assert found.top(1).indices[0, 0] == found.ranking(0)[0].place
    torch.testing.assert_close(found @ found.value, found.output)
    assert torch.equal(found.snapshot().entropy(), found.weights.entropy())


def test_a_question_is_a_row_of_its_own():
    together = rg.relate(SEGMENTS, QUESTIONS, Letters())
    for place, question in enumerate(QUESTIONS):
        alone = rg.relate(SEGMENTS, question, Letters())
        torch.testing.assert_close(together.weights[place], alone.weights[0])
        assert [r.place for r in together.ranking(place)] == [r.place for r in alone.ranking()]


def test_a_real_question_does_not_depend_on_its_company():
    told = datasets.passage("en")
    alone = rg.relate(told.segments, told.questions[0]).weights[0]
    long = "He said that nobody who lives in this house has ever been as tall as that, which is a very long sentence"
    together = rg.relate(told.segments, [long, told.questions[0]]).weights[1]
    torch.testing.assert_close(alone, together, atol=1e-5, rtol=0)


def test_without_questions_no_segment_sees_itself():
    weights = rg.relate(SEGMENTS, encoder=Letters()).weights.dense()
    assert torch.equal(weights.diagonal(), torch.zeros(5))
    seen = rg.relate(SEGMENTS, SEGMENTS, Letters()).weights.dense()
    rest = seen * (1 - torch.eye(5))
    torch.testing.assert_close(weights, rest / rest.sum(-1, keepdim=True))


def test_heads_are_projections():
    w_q, w_k = torch.randn(2, 7, 3), torch.randn(2, 7, 3)
    found = rg.relate(SEGMENTS, QUESTIONS, Letters(), heads=(w_q, w_k))
    unit = torch.nn.functional.normalize
    query, key = (unit(Letters().encode(texts).states, dim=-1) for texts in (QUESTIONS, SEGMENTS))
    torch.testing.assert_close(found.weights.dense(), torch.softmax((query @ w_q) @ (key @ w_k).mT / 0.1, -1))
    assert found.heads == ("head 1", "head 2") and found.row(2, head=1) == found.weights[1, 2].tolist()


def test_a_head_along_every_direction_is_no_head():
    plain = rg.relate(SEGMENTS, QUESTIONS, Letters()).weights.dense()
    found = rg.relate(SEGMENTS, QUESTIONS, Letters(), heads={"all": list("abcdefg"), "a": ["a", "aa"]})
    torch.testing.assert_close(found.weights[0], plain)
    only_a = found.weights[1]
    torch.testing.assert_close(only_a[1], torch.full((5,), 0.2))  # a question without an a is a question about nothing


def test_two_heads_give_one_question_two_answers():
    told = datasets.passage("zh")
    heads = {"body": ["身高", "体重", "血型", "高"], "school": ["数学", "学习", "课", "成绩"]}
    found = rg.relate(told.segments, "姚明为什么这么高", heads=heads)
    assert [found.ranking(head=head)[0].place for head in (0, 1)] == [0, 1]


@pytest.mark.parametrize(
    ("heads", "error"),
    [
        ({}, ChoiceError),
        ({"a": "word"}, ChoiceError),
        ({"a": []}, ChoiceError),
        ({"x": ["xyz"]}, UnknownTextError),
        ([torch.eye(7)], DtypeError),
        ((torch.zeros(2, 5, 3), torch.zeros(2, 5, 3)), ShapeError),
        ((torch.zeros(2, 7, 3), torch.zeros(3, 7, 3)), ShapeError),
    ],
)
@pytest.mark.plain
def test_heads_that_are_none_are_refused(heads, error):
    with pytest.raises(error):
        rg.relate(SEGMENTS, QUESTIONS, Letters(), heads=heads)


@pytest.mark.parametrize(
    ("texts", "encoder", "message"),
    [
        (("привет как дела", "что это"), None, "most letters here are Cyrillic"),
        (("привет как дела", "что это"), "minilm", "does not know 3 of the 3 words"),
        (("日本語の文章です", "何ですか"), None, "most letters here are Japanese"),
        (("123", "456"), None, "there are no letters here"),
        (("他爱吃苹果 | 经常旷课", "中国人"), "minilm", "does not know"),
        (("He loves apples", "xqzt wvbk"), None, "does not know 2 of the 2 words of 'xqzt wvbk'"),
        (("他爱吃苹果 | 经常旷课", "Why is he so tall?"), None, "of the 5 words of 'Why is he so tall?': Why"),
        (("他爱吃苹果 | 经常旷课", "他怎么样"), None, "finds no word in '他怎么样' that says anything"),
    ],
)
def test_text_that_the_encoder_does_not_know_is_refused(texts, encoder, message):
    with pytest.raises(UnknownTextError, match=re.escape(message)) as refused:
        rg.relate(*texts, encoder=encoder)
    assert isinstance(refused.value, ValueError)


def test_a_few_unknown_words_are_reported():
    found = rg.relate(["ab xyz", "cd"], "a", Letters())
    assert found.unknown == {"ab xyz": ("xyz",)}


def test_a_text_beyond_the_encoder_is_refused():
    with pytest.raises(ShapeError, match=r"reads 512 tokens at a time, and this text has \d+"):
        rg.relate(["apple " * 600, "pear"], "fruit")


def test_a_folder_is_an_encoder():
    from regard import models

    told = datasets.passage("en", short=True)
    named, folder = (rg.relate(told.segments, told.questions, e) for e in ("minilm", models.folder("minilm")))
    assert torch.equal(named.weights.dense(), folder.weights.dense())
    assert "mean of the tokens" in folder.encoder


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rg.relate("", "why"), ChoiceError, "nothing in the passage"),
        (lambda: rg.relate("ab", []), ChoiceError, "nothing in the question"),
        (lambda: rg.relate(["ab", " "], "a"), ChoiceError, "a passage is empty"),
        (lambda: rg.relate("ab", "a\udcff"), ChoiceError, "a question has half a character"),
        (lambda: rg.relate("ab"), ChoiceError, "one segment alone"),
        (lambda: rg.relate(["ab", 3], "a"), DtypeError, "a passage is text, not int"),
        (lambda: rg.relate("ab", "a", temperature=0), ChoiceError, "temperature must be above 0, 0 came"),
        (lambda: rg.relate("ab", "a", encoder=3), DtypeError, "encoder is a name, a folder"),
        (lambda: rg.relate("ab", "a", encoder=""), ChoiceError, "came empty"),
        (lambda: rg.relate("ab", "a", Letters()).rank(1), ChoiceError, "there is no segment 1"),
        (lambda: rg.relate("ab", "a", Letters()).ranking(1), ChoiceError, "there is no 1"),
        (lambda: rg.relate("ab", "a", Letters()).ranking(0, head=1), ChoiceError, "1 heads"),
        (lambda: datasets.passage("fr"), ChoiceError, "en and zh, not in 'fr'"),
    ],
)
@pytest.mark.plain
def test_bad_arguments_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("passage", "segments"),
    [
        ("a | b ||c|", ["a", "b", "c"]),
        ("He is 2.13 m tall. She is not!", ["He is 2.13 m tall.", "She is not!"]),
        ("His blood type is A. He runs; he swims.", ["His blood type is A.", "He runs", "he swims."]),
        ("Dr. J. R. Li met Mr. Wu. They left.", ["Dr. J. R. Li met Mr. Wu.", "They left."]),
        ('"What?" he said. Fine.', ['"What?" he said.', "Fine."]),
        ('She said "no." Then he left.', ['She said "no."', "Then he left."]),
        ("A line that\nwraps here\nNew line\n\nEnd", ["A line that wraps here", "New line", "End"]),
        ("他爸有2米高，经常旷课。他爱吃苹果！", ["他爸有2米高", "经常旷课。", "他爱吃苹果！"]),
        ("但是，他爱吃苹果,真的很爱吃", ["但是，他爱吃苹果", "真的很爱吃"]),
        ("他说：“好的。”然后走了\n第二行", ["他说：“好的。”", "然后走了", "第二行"]),
        ("苹果、梨，1,000 米", ["苹果、梨", "1,000 米"]),
        ("...。", []),
    ],
)
def test_a_passage_is_cut_where_a_reader_would(passage, segments):
    assert split(passage) == segments


@LANGUAGES
def test_the_story_is_its_own_cut(language):
    segments = datasets.passage(language).segments
    assert split(" | ".join(segments)) == list(segments)
    assert split("\n".join(segments)) == list(segments)
    assert split(("，" if language == "zh" else ". ").join(segments)) == [
        text + ("." if language == "en" and place < 12 else "") for place, text in enumerate(segments)
    ]


def test_the_script_of_a_text_is_that_of_most_letters():
    assert script_of(["Straße über Äpfel"]) == "Latin"
    assert script_of(["他看 NBA", "ok"]) == "Chinese"
    assert script_of(["한국어"]) == "Hangul"
    assert script_of(["12 !"]) == ""


def widths(ax):
    return [patch.get_linewidth() for patch in ax.patches]


@LANGUAGES
def test_lines_are_as_wide_as_weights(language):
    told = datasets.passage(language, short=True)
    found = rg.relate(told.segments, told.questions)
    ax = plot.relations(found, title="线")
    drawn = [weight for question in (0, 1) for weight in found.row(question) if weight >= 0.002]
    assert widths(ax) == pytest.approx([max(0.3, 16 * weight) for weight in drawn])
    texts = {text.get_text().replace("\n", " ") for text in ax.texts}
    assert {*told.segments, *told.questions} <= texts
    assert len({patch.get_edgecolor()[:3] for patch in ax.patches}) == 2


def test_a_long_passage_draws_what_matters_and_says_so():
    found = rg.relate([*(["bcc"] * 50), "a"], "a", Letters())
    ax = plot.relations(found, most=7)
    assert ax.get_title() == "7 of 51 segments"
    assert "a" in {text.get_text() for text in ax.texts[1:]}
    with pytest.raises(ChoiceError, match="1 or more, 0 came"):
        plot.relations(found, most=0)


def run(*arguments, **options):
    return CliRunner().invoke(cli.build(), ["relate", *map(str, arguments)], **options)


@pytest.mark.plain
def test_the_command_prints_bars_and_draws(tmp_path):
    (tmp_path / "story.txt").write_text("他爸有2米高，他从小的数学成绩并不好，经常旷课。", encoding="utf-8")
    said = run(
        tmp_path / "story.txt", "-q", "姚明为什么这么高", "-q", "他三角函数不懂", "--png", tmp_path / "lines.png"
    )
    assert said.exit_code == 0, said.output
    lines = said.stdout.splitlines()
    assert lines[0].startswith("words (125,796")
    for question, best in (("姚明为什么这么高", "他爸有2米高"), ("他三角函数不懂", "他从小的数学成绩并不好")):
        assert best in lines[lines.index(question) + 1] and "█" in lines[lines.index(question) + 1]
    assert (tmp_path / "lines.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.plain
def test_the_command_tells_unknown_words_line_under_line():
    said = run("他爸有2米高。他现在身高是2.13米。他爱吃苹果。", "-q", "姚明为什么这么高")
    assert said.exit_code == 0, said.output
    *_, before, first, second = said.stdout.splitlines()
    assert not before
    assert all(line.startswith("not known to the encoder, in") and line.endswith(": 米") for line in (first, second))


@pytest.mark.plain
def test_the_command_reads_what_is_piped_and_prints_the_top():
    said = run("-", "-q", "apple", "--top", "1", input="He loves apples. He runs. It rains.")
    assert said.exit_code == 0, said.output
    assert "He loves apples." in said.stdout and "It rains" not in said.stdout
    assert "2 more segments: --top 3" in said.stdout


@pytest.mark.plain
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("He runs. He swims.", "-q", "что это"), "does not know"),
        (("He runs.", "-q", "why", "--png", "lines.xyz"), "known by its ending"),
        (("He runs.", "-q", "why", "--png", "nowhere/lines.png"), "there is no folder nowhere"),
        (("He runs.", "-q", "why", "--encoder", "./nowhere"), "there is no such folder"),
    ],
)
def test_the_command_refuses_bad_arguments(arguments, message):
    said = run(*arguments)
    assert said.exit_code == 1
    assert message in str(said.exception)
