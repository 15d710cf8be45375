"""``upright bench p4``: the published ablation, pass-through on and off over the same traces."""
