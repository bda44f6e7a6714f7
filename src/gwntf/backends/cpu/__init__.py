"""The fused CPU backend: numba kernels that take a tile of columns through all scalings while it lies in cache.

`powers` holds x ** -p and log in a form that LLVM vectorises, `tile` the scaling loop, `stack` the transport of a
whole mode, `backend` the backend that offers them. numba is imported here and nowhere else.
"""
