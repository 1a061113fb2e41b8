"""How a spec over queries, keys and values becomes numbers: inputs, plan, tiles, fold, reducers, fused kernels."""
