"""Five objects on a desk. With no query the red cup stands out; with the query "I want to read" the book wins.

Run: python examples/desk.py
"""

from regard import datasets
from regard.lab.examples import attention

desk = datasets.desk()
for cue, look in (
    ("no query", attention.look_without_a_query(desk)),
    (f'"{desk.query_text}"', attention.look_with_a_query(desk)),
):
    shares = look.weights.dense()[0].tolist()
    print(f"\n{cue}: the {desk.names[int(look.weights.top(1).indices)]}")
    for name, share in zip(desk.names, shares, strict=True):
        print(f"  {name:<16}{share:6.3f}  {'█' * round(40 * share)}")
