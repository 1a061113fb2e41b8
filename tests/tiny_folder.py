"""A tiny causal model with its tokenizer, saved as a folder such as `from_pretrained` takes."""

from pathlib import Path

import tiny_models

HOSTILE = ["</script>", "<img/src=x/onerror=document.title='owned'>", "&lt;", "<!--", "\u202eabc", "\x1b[31m", "旷课"]


def make(folder: Path, *, layers: int = 2, context: int = 4096, words: int = 40) -> Path:
    """Every word of a text that has no space in it is one token: w0, w1, ..., and the hostile ones."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = ["<s>", "</s>", "<pad>", "[UNK]", *HOSTILE, *(f"w{i}" for i in range(words))]
    plain = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]", pad_token="<pad>", eos_token="</s>")
    tokenizer.save_pretrained(folder)
    options = {
        **tiny_models.GROUPED, "vocab_size": 97, "num_hidden_layers": layers, "max_position_embeddings": context,
    }  # fmt: skip
    tiny_models.make("LlamaForCausalLM", "LlamaConfig", options).save_pretrained(folder)
    return folder


def text(count: int) -> str:
    return " ".join(f"w{7 * i * i % 37}" for i in range(count))
