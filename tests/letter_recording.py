"""A small recording whose tokens are letters, for tests of what a recording tells about them."""

import torch

import regard as rg
from regard.recording import Recording


class Letters:
    """A tokenizer whose tokens are the letters of the alphabet."""

    def decode(self, ids: list[int]) -> str:
        return "".join(chr(97 + number) for number in ids)


class Model(torch.nn.Module):
    """Two layers over token ids, one of them of fewer heads than the other."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(26, 12)
        self.first, self.second = rg.nn.SelfAttention(12, 3), rg.nn.SelfAttention(12, 2)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(self.embed(input_ids)).output).output


def recorded(ids: list[list[int]], steps: int = 1, **options) -> Recording:
    model = Model()
    with torch.no_grad(), rg.record(model, **options) as recording:
        for step in range(steps):
            model(input_ids=torch.tensor(ids) + step)
    return recording
