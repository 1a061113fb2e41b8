"""Tables from the files people have: encodings, notations of numbers, dates, and columns as features."""
