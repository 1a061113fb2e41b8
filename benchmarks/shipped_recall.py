"""Make the two models of the lesson "Why attention": train them, measure what they recall, and store them.

    python -m benchmarks.shipped_recall          both models, in one thread, one after the other

Both see the same random sentences in the same number of steps. A word is drawn uniformly from the vocabulary, so that
nothing can be guessed from its neighbours: what is recalled was kept.
"""

import argparse
import hashlib
import time

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.lab import recall
from regard.lab.recall import _model
from regard.seq2seq import checkpoint

STEPS, BATCH = 8_000, 32
LEARNING_RATE, WARMUP, CLIP = 5e-3, 0.05, 1.0
SEED = 0
MEASURED = 2_000  # random sentences of each length


def train(attention: str, steps: int = STEPS) -> recall.Recall:
    """A model after `steps` batches, each of sentences of one length, which is drawn from 1 to the longest."""
    torch.manual_seed(SEED)
    model = recall.Recall(attention)
    optimiser = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, total_steps=steps, pct_start=WARMUP)
    generator = torch.Generator().manual_seed(SEED)
    for step in range(1, steps + 1):
        length = int(torch.randint(1, recall.LONGEST + 1, (), generator=generator))
        sentences = torch.randint(len(recall.WORDS), (BATCH, length), generator=generator)
        loss = nn.functional.cross_entropy(model(sentences).logits.flatten(0, 1), sentences.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        schedule.step()
        if step % 500 == 0:
            print(f"{attention} {step}/{steps} loss {loss.item():.3f} ({length} words)", flush=True)
    return model


def measure(model: recall.Recall, sentences: int = MEASURED, seed: int = 1) -> Float[Tensor, "longest longest"]:
    """The mean probability of the right word by length and place, over random sentences of each length."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.zeros(recall.LONGEST, recall.LONGEST)
    with torch.inference_mode():
        for length in range(1, recall.LONGEST + 1):
            drawn = torch.randint(len(recall.WORDS), (sentences, length), generator=generator)
            table[length - 1, :length] = model.probability(drawn).mean(0)
    return table


def store(attention: str, model: recall.Recall, seconds: float, steps: int) -> None:
    """Write a model in float16, with what it recalls in these numbers, and its checksum."""
    halves = {name: tensor.half() for name, tensor in model.state_dict().items()}
    model.load_state_dict({name: tensor.float() for name, tensor in halves.items()})
    tensors = {**halves, "mean_probability": measure(model.eval()).half()}
    about = {"attention": attention, "sentences": MEASURED, "steps": steps, "seconds": round(seconds), "seed": SEED}
    path = recall.weights_path(attention)
    checkpoint.write(path, tensors, about)
    checksums = checkpoint.read_json(_model.CHECKSUMS) if _model.CHECKSUMS.exists() else {}
    checksums[attention] = hashlib.sha256(path.read_bytes()).hexdigest()
    checkpoint.write_json(_model.CHECKSUMS, checksums)
    print(f"{path} {path.stat().st_size / 1e3:.0f} kB, {seconds:.0f} s of processor time", flush=True)


def main() -> None:
    """Train, measure and store the models that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=recall.MODELS, help="models: none, luong; both if none is named")
    parser.add_argument("--steps", type=int, default=STEPS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for attention in asked.names:
        began = time.process_time()
        model = train(attention, asked.steps)
        store(attention, model, time.process_time() - began, asked.steps)


if __name__ == "__main__":
    main()
