"""Attention over sequences that are divided between processes: layouts, transport, the ring and the head exchange."""
