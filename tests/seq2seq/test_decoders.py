"""Decoders against the equations of their papers, written out in float64, one sentence and one step at a time."""

import math

import pytest
import torch
from seq2seq_models import KINDS, built

from regard.seq2seq.vocabulary import START

SOURCE, TARGET = [4, 9, 6, 7, 5], [START, 5, 8, 4]


def cell(state, prefix, x, hidden):
    """torch's GRU, or LSTM for a pair, from its documented equations."""
    gates = x @ state[f"{prefix}weight_ih_l0"].mT + state[f"{prefix}bias_ih_l0"]
    h = hidden[0] if isinstance(hidden, tuple) else hidden
    own = h @ state[f"{prefix}weight_hh_l0"].mT + state[f"{prefix}bias_hh_l0"]
    if isinstance(hidden, tuple):
        i, f, g, o = (gates + own).chunk(4)
        c = torch.sigmoid(f) * hidden[1] + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c
    (r, z, n), (r_own, z_own, n_own) = gates.chunk(3), own.chunk(3)
    n = torch.tanh(n + torch.sigmoid(r + r_own) * n_own)
    z = torch.sigmoid(z + z_own)
    return (1 - z) * n + z * h


def head(hidden):
    return hidden[0] if isinstance(hidden, tuple) else hidden


def encoded(state, model, source):
    """Annotations [forward; backward] and the last state of both directions."""
    x = state["source_embedding.weight"][source] * math.sqrt(model.settings["embedding"])
    half = model.settings["hidden"] // 2
    zero = torch.zeros(half, dtype=x.dtype)
    runs = []
    for suffix, order in (("", range(len(source))), ("_reverse", reversed(range(len(source))))):
        own = {name.replace(f"l0{suffix}", "l0"): t for name, t in state.items() if name.endswith(f"l0{suffix}")}
        hidden, seen = (zero, zero) if model.settings["cell"] == "lstm" else zero, {}
        for j in order:
            hidden = cell(own, "encoder.rnn.", x[j], hidden)
            seen[j] = head(hidden)
        runs.append((torch.stack([seen[j] for j in range(len(source))]), head(hidden)))
    (forward, last), (backward, first) = runs
    return torch.cat([forward, backward], -1), torch.cat([last, first])


def context_of(state, model, query, h):
    """The context of a query by the score of the model."""
    kind, score = model.settings["attention"], model.settings["score"]
    w, v = state.get("decoder.attention.w"), state.get("decoder.attention.v")
    if kind == "bahdanau":
        w_q, w_k = state["decoder.attention.w_q"], state["decoder.attention.w_k"]
        e = torch.stack([v @ torch.tanh(w_q @ query + w_k @ h_j) for h_j in h])
    elif score == "location":
        e = w[: len(h)] @ query
    else:
        scores = {
            "dot": lambda h_j: query @ h_j,
            "general": lambda h_j: query @ w @ h_j,
            "concat": lambda h_j: v @ torch.tanh(w @ torch.cat([query, h_j])),
        }
        e = torch.stack([scores[score](h_j) for h_j in h])
    if kind != "local":
        return torch.softmax(e, 0) @ h
    window, places = model.settings["window"], torch.arange(len(h))
    w_p, v_p = state["decoder.attention.w_p"], state["decoder.attention.v_p"]
    p = len(h) * torch.sigmoid(v_p @ torch.tanh(w_p @ query))
    a = torch.softmax(torch.where((places - p).abs() <= window, e, -math.inf), 0)
    return (a * torch.exp(-((places - p) ** 2) / (2 * (window / 2) ** 2))) @ h


def deep_output(state, *parts):
    t = state["decoder.output.linear.weight"] @ torch.cat(parts) + state["decoder.output.linear.bias"]
    return torch.stack([torch.maximum(t[2 * k], t[2 * k + 1]) for k in range(len(t) // 2)])


def features_by_paper(state, model, source, target):
    """Features of every step, by the equations in the docstrings of the decoders."""
    kind, feeding = model.settings["attention"], model.settings["input_feeding"]
    h, final = encoded(state, model, source)
    width = model.settings["embedding"]
    begin = final[model.settings["hidden"] // 2 :] if kind == "bahdanau" else final
    s = torch.tanh(state["decoder.first.weight"] @ begin + state["decoder.first.bias"])
    if model.settings["cell"] == "lstm":
        s = (s, torch.zeros_like(s))
    t = torch.zeros(width, dtype=final.dtype)
    found = []
    for y in target:
        e_y = state["target_embedding.weight"][y] * math.sqrt(width)
        if kind in {"bahdanau", "none"}:
            c = final if kind == "none" else context_of(state, model, head(s), h)
            s = cell(state, "decoder.rnn.", torch.cat([e_y, c]), s)
            t = deep_output(state, head(s), e_y, c)
        else:
            s = cell(state, "decoder.rnn.", torch.cat([e_y, t]) if feeding else e_y, s)
            c = context_of(state, model, head(s), h)
            t = torch.tanh(state["decoder.output.weight"] @ torch.cat([c, head(s)]) + state["decoder.output.bias"])
        found.append(t)
    return torch.stack(found)


def transformer_by_paper(state, model, source, target):
    """Pre-norm Transformer, head by head and query by query."""
    dim, heads, layers = (model.settings[name] for name in ("embedding", "heads", "layers"))

    def norm(x, name):
        x = x - x.mean(-1, keepdim=True)
        x = x / torch.sqrt((x**2).mean(-1, keepdim=True) + 1e-5)
        return x * state[f"{name}.weight"] + state[f"{name}.bias"]

    def linear(x, name):
        return x @ state[f"{name}.weight"].mT + state[f"{name}.bias"]

    def attend(x, memory, name, causal):
        w, b = state[f"{name}.in_proj_weight"], state[f"{name}.in_proj_bias"]
        q, k, v = (
            y @ w[i * dim : (i + 1) * dim].mT + b[i * dim : (i + 1) * dim] for i, y in enumerate((x, memory, memory))
        )
        rows = []
        for i in range(len(x)):
            seen = i + 1 if causal else len(memory)
            parts = []
            for at in torch.arange(dim).chunk(heads):
                e = k[:seen][:, at] @ q[i, at] / math.sqrt(len(at))
                parts.append(torch.softmax(e, 0) @ v[:seen][:, at])
            rows.append(torch.cat(parts))
        return linear(torch.stack(rows), f"{name}.out_proj")

    def forward(x, name):
        return linear(torch.relu(linear(x, f"{name}.0")), f"{name}.3")

    def embedded(table, tokens):
        x = state[f"{table}.weight"][tokens] * math.sqrt(dim)
        places = torch.arange(len(tokens), dtype=x.dtype)[:, None] / 10_000 ** (torch.arange(0, dim, 2).double() / dim)
        return x + torch.stack([places.sin(), places.cos()], -1).flatten(1)

    x = embedded("source_embedding", source)
    for layer in range(layers):
        name = f"encoder.layers.{layer}"
        seen = norm(x, f"{name}.norms.0")
        x = x + attend(seen, seen, f"{name}.attention", causal=False)
        x = x + forward(norm(x, f"{name}.norms.1"), f"{name}.feed_forward")
    memory = norm(x, "encoder.norm")
    x = embedded("target_embedding", target)
    for layer in range(layers):
        name = f"decoder.layers.{layer}"
        seen = norm(x, f"{name}.norms.0")
        x = x + attend(seen, seen, f"{name}.attention", causal=True)
        x = x + attend(norm(x, f"{name}.norms.1"), memory, f"{name}.cross_attention", causal=False)
        x = x + forward(norm(x, f"{name}.norms.2"), f"{name}.feed_forward")
    return norm(x, "decoder.norm")


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_and_gradients_are_those_of_the_papers_equations(kind):
    model = built(kind, torch.float64)
    state = {name: t.clone().requires_grad_() for name, t in model.state_dict().items()}
    by_paper = transformer_by_paper if kind == "transformer" else features_by_paper
    expected = by_paper(state, model, SOURCE, TARGET)
    memory = model.encode(torch.tensor([SOURCE]))
    features, _ = model.force(torch.tensor([TARGET]), memory)
    torch.testing.assert_close(features[0], expected, rtol=1e-9, atol=1e-11)
    wanted = torch.randn(expected.shape, dtype=torch.float64)
    (features[0] * wanted).sum().backward()
    (expected * wanted).sum().backward()
    for name, parameter in model.named_parameters():
        if name != "bias":  # of the output, behind the features
            torch.testing.assert_close(parameter.grad, state[name].grad, rtol=1e-7, atol=1e-10, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_step_by_step_equals_teacher_forcing(kind):
    model = built(kind)
    memory = model.encode(torch.tensor([SOURCE, SOURCE[::-1]]))
    target = torch.tensor([TARGET, [START, 4, 4, 6]])
    features, queries = model.force(target, memory)
    state, steps = model.start(memory), []
    for tokens in target.unbind(1):
        step = model.step(tokens, state, memory)
        state = step.state
        steps.append(step)
    torch.testing.assert_close(torch.stack([step.features for step in steps], 1), features, rtol=1e-4, atol=1e-5)
    if queries is None:
        assert kind.startswith("none") and all(step.attention is None for step in steps)
        return
    weights = model.weights(queries[:1], memory.sentence(0))
    each = torch.cat([step.attention.weights.dense()[:1] for step in steps], -2)[0]
    torch.testing.assert_close(weights.dense(), each, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_no_result(kind):
    model = built(kind)
    sources = [SOURCE, [8, 4], [6, 6, 10, 4, 5, 7, 9]]
    table = torch.tensor([source + [9] * (7 - len(source)) for source in sources])  # padding need not be zeros
    memory = model.encode(table, torch.tensor([len(source) for source in sources]))
    targets = torch.tensor([TARGET] * 3)
    padded, _ = model.force(targets, memory)
    for i, source in enumerate(sources):
        alone, _ = model.force(targets[:1], model.encode(torch.tensor([source])))
        torch.testing.assert_close(padded[i : i + 1], alone, rtol=0, atol=1e-5 if kind == "transformer" else 1e-6)


def test_gradients_do_not_reach_padding():
    model = built("bahdanau")
    embedded = torch.randn(2, 5, 6, requires_grad=True)
    memory = model.decoder.prepare(model.encoder(embedded, torch.tensor([5, 3])))
    model.force(torch.tensor([TARGET] * 2), memory)[0].sum().backward()
    assert embedded.grad[1, 3:].abs().max() == 0 < embedded.grad[1, :3].abs().max()


def test_keys_are_projected_once_for_a_sentence(monkeypatch):
    model = built("bahdanau")
    layer, calls = type(model.decoder.attention), []
    project = layer.project_keys
    monkeypatch.setattr(layer, "project_keys", lambda self, key: calls.append(1) or project(self, key))
    model.force(torch.tensor([TARGET]), model.encode(torch.tensor([SOURCE])))
    assert len(calls) == 1
