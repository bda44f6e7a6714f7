"""How fast the library is: every case side by side with its peers, in one process.

`python -m benchmarks` (or `make bench`) runs all cases and writes `results/`, `docs/performance.md` and its picture;
`python -m benchmarks NAME` runs one. `harness` measures, `report` writes, every other file holds cases. Beside them,
three write pages of their own: `python -m benchmarks.imputation` compares how well missing entries are filled in, and
`python -m benchmarks.held_out` and `python -m benchmarks.stability` measure new samples and the choice of the rank.
"""
