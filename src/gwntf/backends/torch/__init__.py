"""The torch backend, on the CPU or on a GPU.

May import `core`, the rest of `backends` and torch. Start with `backend`. `fused` has the transports in Triton,
`recording` CUDA graphs, `arrays` conversions, `namespace` torch under the names of the array API standard, `sparse`
products with sparse matrices, `memory` the handling of out-of-memory errors.
"""
