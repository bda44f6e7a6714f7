"""Transports in Triton, all scalings in one kernel; short fibers stay in registers.

May import `core`, `backends.forms`, `backends.protocol`, torch and Triton. Start with `launch`, then `arguments`. The
kernels are in `dense` and `exponential`, which share `short_fibers`, and in `long_exponential`; all of them use
`recursion`, `entries`, `fibers` and `arithmetic`. `rows` is the product of a sparse and a dense matrix.
"""

from gwntf.backends.torch.fused.launch import FusedTransport, can_be_recorded, fused_transport

__all__ = ["FusedTransport", "can_be_recorded", "fused_transport"]
