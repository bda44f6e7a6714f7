"""The compiled CPU backend: numba kernels that do all scalings of a tile of columns while it is in cache.

`powers` has x ** -p and log in a form that LLVM vectorises, `products` the products with kernels, `tile` the scaling
loop, `stack` the transport of a mode, `rows` and `entrywise` the steps of other losses, `cache` the compiled code on
disk. Start with `backend`. numba is only imported in this folder.
"""
