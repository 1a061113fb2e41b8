"""Properties of every term: tensors by name, a signature without numbers, and its own part of the operands."""

import pytest
import torch

from regard import masks, normalisers, scores
from regard.masks._rules import Near, QueryLengths
from regard.normalisers import Tapered
from regard.term import Term

Q, K, N, M = 3, 5, 7, 11
SCORES = [
    scores.dot,
    lambda: scores.cosine(2.0),
    lambda: scores.general(torch.randn(Q, K)),
    lambda: scores.additive(torch.randn(2, Q), torch.randn(2, K), torch.randn(2)),
    lambda: scores.concat(torch.randn(2, Q + K), torch.randn(2)),
    lambda: scores.location(torch.randn(M, Q)),
    lambda: scores.gaussian(torch.rand(Q)),
    lambda: scores.kernel("boxcar", torch.rand(())),
    scores.uniform,
    lambda: scores.bias(torch.randn(N, M)),
    lambda: scores.alibi(torch.rand(2)),
    lambda: scores.relative(torch.randn(2, 99), -40),
    lambda: scores.softcap(scores.general(torch.randn(Q, K)) + scores.bias(torch.randn(M)), 3.0),
]
MASKS = [
    lambda: masks.causal("top-left"),
    lambda: masks.prefix(3),
    lambda: masks.padding(torch.randint(M, (2,))),
    lambda: masks.ranges(torch.randint(M, (2, N)), torch.randint(M, (2, N))),
    lambda: masks.segments(torch.randint(3, (N,)), torch.randint(3, (M,))),
    lambda: QueryLengths(torch.randint(M, (2, N))),
    lambda: Near(torch.rand(2, N), 3),
    lambda: masks.hide(torch.rand(N, M) > 0.5) & (masks.prefix(3) | masks.padding(torch.randint(M, (2,)))),
]
NORMALISERS = [normalisers.softmax, normalisers.sparsemax, normalisers.entmax15, normalisers.sigmoid, normalisers.hard]
NORMALISERS += [lambda: Tapered(torch.randn(2, N), M, 1.5)]


@pytest.mark.parametrize("make", [*SCORES, *MASKS, *NORMALISERS])
def test_a_signature_does_not_depend_on_numbers_in_tensors(make) -> None:
    assert make().signature == make().signature
    assert hash(make().signature) == hash(make().signature)


def test_signatures_tell_terms_apart() -> None:
    terms: list[Term] = [make() for make in (*SCORES, *MASKS, *NORMALISERS)]
    terms += [scores.scaled_dot(), scores.scaled_dot(2.0), scores.cosine(3.0), masks.prefix(4), masks.window(1, 2)]
    terms += [scores.bias(torch.randn(M)), scores.bias(torch.randn(M, requires_grad=True)), normalisers.sigmoid(1.0)]
    terms += [scores.kernel("gaussian", 1.0), scores.gaussian(1.0), normalisers.hard(sample=True)]
    assert len({term.signature for term in terms}) == len(terms)


def test_a_generator_is_no_part_of_a_signature() -> None:
    drawn = normalisers.hard(sample=True, generator=torch.Generator())
    assert drawn.signature == normalisers.hard(sample=True).signature


@pytest.mark.parametrize("make", SCORES)
def test_a_score_has_as_many_operands_as_it_says(make) -> None:
    width = Q if "q - k" in repr(make()) or repr(make()) in ("q·k", "cos(q, k) / 2") else K
    assert len(make().operands(torch.randn(2, N, Q), torch.randn(2, M, width))) == make().arity


@pytest.mark.parametrize("make", MASKS)
def test_a_mask_has_as_many_operands_as_it_says(make) -> None:
    assert len(make().operands((2,))) == make().arity


def test_tensors_have_the_names_that_the_caller_gave_them() -> None:
    capped = scores.softcap(scores.general(torch.randn(Q, K)) + scores.bias(torch.randn(M)), 3.0)
    assert list(capped.tensors()) == ["w of general", "t of bias"]
    assert list((capped + scores.bias(torch.randn(M))).tensors()) == ["w of general", "t of bias", "another t of bias"]
    assert list(scores.gaussian(torch.rand(Q)).tensors()) == ["w of gaussian"]
    assert list(scores.kernel("gaussian", torch.rand(Q)).tensors()) == ["bandwidth of kernel"]
    assert list(scores.kernel("boxcar", torch.rand(Q)).tensors()) == ["bandwidth of kernel"]
    assert list(masks.hide(torch.rand(N, M) > 0.5).tensors()) == ["the tensor of hide"]
    assert list(normalisers.hard(sample=True, generator=torch.Generator()).tensors()) == []


def test_each_part_gets_its_own_operands() -> None:
    tensors = [torch.tensor(i) for i in range(3)]
    one, two = (scores.dot() + scores.bias(torch.randn(M))).split_operands(tensors)
    assert ([int(t) for t in one], [int(t) for t in two]) == ([0, 1], [2])


def test_combined_masks_have_the_properties_of_their_parts() -> None:
    causal, prefix = masks.causal(), masks.prefix(2)
    assert [m.per_key for m in (prefix, ~prefix, prefix | ~prefix, prefix & causal, causal)] == [True] * 3 + [False] * 2
    assert [m.relative for m in (causal, ~causal, causal & ~causal, prefix & causal)] == [True] * 3 + [False]
