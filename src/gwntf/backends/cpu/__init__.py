"""The compiled CPU backend: numba functions that do all scalings of a tile of columns while it is in cache.

Start with `backend`. `powers` has x ** -p and log in a form that LLVM vectorises, `products` the products with kernels,
`tile` the scaling loop, `stack` the transport of a mode, `rows` and `entrywise` the updates of other losses, and
`cache` the compiled code on disk. numba is imported only in this folder.
"""
