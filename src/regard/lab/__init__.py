"""Lessons on attention: worked examples with their pictures (`examples`), and the pages of the browser (`pages`)."""
