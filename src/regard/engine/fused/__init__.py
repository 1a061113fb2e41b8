"""torch's fused attention kernels: which scores they can run, and which questions they can answer."""
