"""Transports from the first scaling to the last in one launch, written in Triton; short fibers stay on the chip.

May import `core`, `backends.forms`, `backends.protocol`, torch and Triton. Start with `launch`; `exponential` is the
transport under K_ij = scale ratio^|i-j|, `long_exponential` that of fibers beyond the registers, `dense` that under any
kernel; `recursion`, `entries`, `fibers` and `arithmetic` are what they stand on.
"""

from gwntf.backends.torch.fused.launch import FusedTransport, fused_transport, needs_no_help

__all__ = ["FusedTransport", "fused_transport", "needs_no_help"]
