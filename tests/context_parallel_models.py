"""Models and batches on which context_parallel is compared with one process; these functions run on every rank."""

import copy
from itertools import count

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from regard import distributed as rd
from regard import errors, masks

IDS = {"vocab_size": 97, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
BODY = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32, **IDS}
GROUPED = {**BODY, "num_key_value_heads": 2}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
PAIR = {
    "d_model": 48, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, **IDS,
}  # fmt: skip
LANGUAGE_MODELS = {
    "Llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED),
    "Mistral": ("MistralForCausalLM", "MistralConfig", {**GROUPED, "sliding_window": 4}),
    "Qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**GROUPED, "head_dim": 12}),
    "Gemma 3": (
        "Gemma3ForCausalLM", "Gemma3TextConfig",
        {**GROUPED, "head_dim": 12, "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]},
    ),
    "Gemma 2": (
        "Gemma2ForCausalLM", "Gemma2Config",
        {**GROUPED, "head_dim": 12, "sliding_window": 4, "attn_logit_softcapping": 2.0, "attn_implementation": "eager"},
    ),
    "GPT-2": (
        "GPT2LMHeadModel", "GPT2Config",
        {"n_layer": 2, "n_embd": 48, "n_head": 4, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0, **IDS},
    ),
    "BERT": ("BertForMaskedLM", "BertConfig", {**BODY, **NO_DROPOUT}),
    "ModernBERT": (
        "ModernBertForMaskedLM", "ModernBertConfig",
        {**BODY, "local_attention": 4, "cls_token_id": 3, "sep_token_id": 4},
    ),
    "ESM": ("EsmForMaskedLM", "EsmConfig", {**BODY, "position_embedding_type": "absolute", "mask_token_id": 5}),
    "RoBERTa": ("RobertaForMaskedLM", "RobertaConfig", BODY),
    "tied Llama": ("LlamaForCausalLM", "LlamaConfig", {**GROUPED, "tie_word_embeddings": True}),
    "Mixtral": (
        "MixtralForCausalLM", "MixtralConfig", {**GROUPED, "num_local_experts": 8, "num_experts_per_tok": 1},
    ),
}  # fmt: skip
REFUSED = {
    "T5": ("T5ForConditionalGeneration", "T5Config", {"d_model": 48, "num_layers": 2, "num_heads": 4, **IDS}),
    "BART": ("BartForConditionalGeneration", "BartConfig", PAIR),
    "Whisper": (
        "WhisperForConditionalGeneration", "WhisperConfig", {**PAIR, "num_mel_bins": 8, "max_source_positions": 10},
    ),
    "BLOOM": ("BloomForCausalLM", "BloomConfig", {"hidden_size": 48, "n_layer": 2, "n_head": 4, **IDS}),
    "MPT": ("MptForCausalLM", "MptConfig", {"d_model": 48, "n_heads": 4, "n_layers": 2, "vocab_size": 97}),
    "DeBERTa": ("DebertaV2ForMaskedLM", "DebertaV2Config", BODY),
    "Mamba": ("MambaForCausalLM", "MambaConfig", {"hidden_size": 48, "num_hidden_layers": 1, "vocab_size": 97}),
    "BERT with a pooler": ("BertModel", "BertConfig", BODY),
    "BERT of sentences": ("BertForSequenceClassification", "BertConfig", BODY),
}  # fmt: skip


def language_model(name, known=LANGUAGE_MODELS):
    import transformers

    kind, config, options = known[name]
    torch.manual_seed(1)
    return getattr(transformers, kind)(getattr(transformers, config)(**options))


def batch_of_tokens(padding=None, *, packed=False, n=23, seed=3):
    """A batch with labels, of which some are ignored; padded at one side, or packed with three documents a row."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(3, 97, (2, n), generator=generator)
    inputs = {"input_ids": tokens, "labels": tokens.clone()}
    inputs["labels"][0, :5] = inputs["labels"][1, 7] = -100
    if padding:
        mask = torch.ones(2, n, dtype=torch.long)
        mask[0, -4:] = 0
        inputs["attention_mask"] = mask if padding == "right" else mask.flip(1)
        inputs["labels"] = inputs["labels"].masked_fill(inputs["attention_mask"] == 0, -100)
    if packed:
        positions = torch.cat([torch.arange(9), torch.arange(11), torch.arange(n - 20)])
        inputs |= {"position_ids": positions.expand(2, n), "use_cache": False}
    return inputs


def differences(alone, shared):
    """The largest difference of two models' gradients, in units of the largest gradient; 0 counts as no gradient."""
    gradients = [
        [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()] for model in (alone, shared)
    ]
    largest = max(float(g.abs().max()) for g in gradients[0])
    return max(float((a - b).abs().max()) for a, b in zip(*gradients, strict=True)) / largest


def compare(name, batch, layout="contiguous", dtype=torch.float64, checkpointing=None):
    """(difference of losses, of gradients) between a model on one process and on all."""
    alone, shared = (language_model(name).to(dtype) for _ in range(2))
    for model in (alone, shared):
        if checkpointing is not None:
            model.gradient_checkpointing_enable({"use_reentrant": checkpointing})
            model.train()
    expected = alone(**batch).loss
    expected.backward()
    with rd.context_parallel(shared):
        loss = shared(**rd.shard_batch(batch, layout=layout, mask=masks.causal())).loss
        loss.backward()
    return float((expected - loss).detach().abs()), differences(alone, shared)


def train(name, steps, padding=None):
    """Losses of each step, on one process and on all."""
    losses = []
    for sharing in (False, True):
        model = language_model(name)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        batches = (batch_of_tokens(padding, n=37, seed=seed) for seed in count())
        with rd.context_parallel(model) if sharing else torch.enable_grad():
            own = []
            for _, batch in zip(range(steps), batches, strict=False):
                optimizer.zero_grad()
                loss = model(**(rd.shard_batch(batch) if sharing else batch)).loss
                loss.backward()
                optimizer.step()
                own.append(loss.item())
        losses.append(own)
    return losses


def refusal(name):
    """The message with which a model is refused."""
    model = language_model(name, REFUSED)
    try:
        with rd.context_parallel(model):
            return None
    except errors.ContextParallelError as error:
        return str(error)


class Net(nn.Module):
    """A model of torch's own functions with tied embeddings, which takes positions as an argument or makes them."""

    def __init__(self, causal=True, reentrant=None, positions="argument"):
        super().__init__()
        self.embedding, self.places = nn.Embedding(50, 24), nn.Embedding(64, 24)
        self.projection, self.out = nn.Linear(24, 72), nn.Linear(24, 24)
        self.head = nn.Linear(24, 50, bias=False)
        self.head.weight = self.embedding.weight
        self.causal, self.reentrant, self.positions = causal, reentrant, positions

    def block(self, x):
        q, k, v = self.projection(x).view(*x.shape[:2], 3, 4, 6).permute(2, 0, 3, 1, 4)
        pooled = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return x + self.out(pooled.transpose(1, 2).reshape(x.shape))

    def forward(self, tokens, positions=None, targets=None):
        if self.positions == "arange":
            positions = torch.arange(tokens.shape[1])
        places = self.places.weight[: tokens.shape[1]] if self.positions == "slice" else self.places(positions)
        x = self.embedding(tokens) + places
        for _ in range(2):
            x = self.block(x) if self.reentrant is None else checkpoint(self.block, x, use_reentrant=self.reentrant)
        logits = self.head(x)
        return logits, None if targets is None else cross_entropy(logits.flatten(0, 1), targets.flatten())


def net(**options):
    torch.manual_seed(1)
    return Net(**options).double()


def tokens_and_targets(n=19):
    generator = torch.Generator().manual_seed(0)
    tokens, targets = torch.randint(0, 50, (2, 3, n), generator=generator)
    targets[0, :7] = -100
    return tokens, targets


def compare_net(layout="contiguous", **options):
    """(difference of logits, of losses, of gradients) of two accumulated passes, on one process and on all."""
    alone, shared = net(**options), net(**options)
    tokens, targets = tokens_and_targets()
    positions = torch.arange(tokens.shape[1])
    results = [alone(tokens, positions, targets), alone(tokens.flip(1), positions, targets)]
    for _, loss in results:
        loss.backward()
    with rd.context_parallel(shared):
        places = rd.shard(positions, dim=0, layout=layout)
        goals = rd.shard(targets, dim=1, layout=layout)
        for i, given in enumerate((tokens, tokens.flip(1))):
            logits, loss = shared(rd.shard(given, dim=1, layout=layout), places, goals)
            loss.backward()
            results.append((rd.gather(logits.detach(), 1, layout), loss))
            del i
    pairs = list(zip(results[:2], results[2:], strict=True))
    logits, losses = (max(float((a[i] - b[i]).detach().abs().max()) for a, b in pairs) for i in (0, 1))
    return logits, losses, differences(alone, shared)


def message(case):
    """The message with which a wrong use is refused, by its name; None if it is not."""
    torch.manual_seed(0)
    try:
        WRONG[case]()
    except errors.ContextParallelError as error:
        return str(error)
    return None


def _loss(model, **options):
    tokens, targets = tokens_and_targets()
    places = rd.shard(torch.arange(tokens.shape[1]), dim=0)
    return model(rd.shard(tokens, dim=1), places, rd.shard(targets, dim=1), **options)[1]


def _run(model, use):
    with rd.context_parallel(model):
        return use(model)


def _different_parameters():
    torch.manual_seed(dist.get_rank())
    _run(Net(), lambda _: None)


def _with_cache(model):
    filled = model(**rd.shard_batch({"input_ids": tokens_and_targets()[0]})).past_key_values
    model(**rd.shard_batch({"input_ids": tokens_and_targets()[0]}), past_key_values=filled)


WRONG = {
    "positions of arange": lambda: _run(net(positions="arange"), _loss),
    "positions of a slice": lambda: _run(net(positions="slice"), _loss),
    "backward after the block": lambda: _run(net(), _loss).backward(),
    "autograd.grad": lambda: _run(net(), lambda m: torch.autograd.grad(_loss(m), list(m.parameters()))),
    "tensors that are not sharded": lambda: _run(net(), lambda m: m(*tokens_and_targets())),
    "other parameters on a rank": _different_parameters,
    "a filled cache": lambda: _run(language_model("Llama"), _with_cache),
    "a part of the model": lambda: _run(
        language_model("Llama"), lambda m: m.model(**rd.shard_batch({"input_ids": tokens_and_targets()[0]}))
    ),
    "positions after the padding token": lambda: _run(
        language_model("ESM"), lambda m: m(**rd.shard_batch({"input_ids": batch_of_tokens()["input_ids"]}))
    ),
    "positions that RoBERTa makes": lambda: _run(
        language_model("RoBERTa"), lambda m: m(**rd.shard_batch({"input_ids": batch_of_tokens()["input_ids"]}))
    ),
    "a recurrent layer": lambda: _run(nn.Sequential(nn.Linear(3, 3), nn.GRU(3, 3)), lambda _: None),
    "a convolution": lambda: _run(nn.Sequential(nn.Conv1d(3, 3, 2)), lambda _: None),
    "nn.MultiheadAttention": lambda: _run(nn.TransformerEncoderLayer(8, 2, 8), lambda _: None),
    "no attention": lambda: _run(nn.Linear(3, 3), lambda m: m(rd.shard(torch.ones(4, 3), dim=0))),
}


def parts_of_a_batch(inputs, layout):
    """This rank's part, and its positions in the whole."""
    part = rd.shard_batch(inputs, layout=layout, mask=masks.causal())
    positions = rd.layout_of(rd.shard(inputs["input_ids"], 1, layout, masks.causal())).positions(dist.get_rank())
    return part, positions


def models_with_one_config():
    """Outputs of a model beside the one in the block, which has the same config: before and inside."""
    import transformers

    inside = language_model("Gemma 3")
    beside = transformers.Gemma3ForCausalLM(inside.config)
    inputs = batch_of_tokens()
    before = beside(**inputs).loss.item()
    with rd.context_parallel(inside):
        inside(**rd.shard_batch(inputs))
        during = beside(**inputs).loss.item()
    after = copy.deepcopy(inside).config._attn_implementation
    return before, during, after


class Layer(nn.Module):
    """One layer of attention, with a mask of the whole sequence of its own or one that it is given."""

    def __init__(self, visible=None):
        super().__init__()
        torch.manual_seed(1)
        self.projection, self.visible = nn.Linear(24, 72), visible

    def forward(self, x, visible=None):
        q, k, v = self.projection(x).view(*x.shape[:2], 3, 4, 6).permute(2, 0, 3, 1, 4)
        mask = self.visible if visible is None else visible
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)


def compare_masked(kind, layout):
    """The difference of outputs under a boolean mask, on one process and on all."""
    x = torch.randn(2, 19, 24, generator=torch.Generator().manual_seed(0))
    if kind == "whole":
        visible = torch.rand(19, 19, generator=torch.Generator().manual_seed(1)) < 0.5
        alone, shared, given = Layer(visible), Layer(visible), ()
        expected = alone(x)
    else:
        keys = torch.arange(19) < torch.tensor([19, 11])[:, None]
        alone, shared = Layer(), Layer()
        expected, given = alone(x, keys[:, None, None]), (rd.shard(keys[:, None, None], -1, layout),)
    with rd.context_parallel(shared):
        output = shared(rd.shard(x, 1, layout), *given)
    return float((rd.gather(output.detach(), 1, layout) - expected).abs().max())


def mask_of_a_part():
    """The message for a mask of this rank's rows and columns."""
    try:
        with rd.context_parallel(Layer(torch.ones(9, 10, dtype=torch.bool))) as layer:
            layer(rd.shard(torch.ones(2, 19, 24), 1))
    except errors.ContextParallelError as error:
        return str(error)
    return None
