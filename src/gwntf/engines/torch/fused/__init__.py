"""Transports of short fibers that stay on the chip from the first scaling to the last, written in Triton.

May import `core`, `engines.forms`, `engines.protocol`, torch and Triton. Start with `launch`; `exponential` is the
transport under K_ij = scale ratio^|i-j|, `dense` under any kernel, `fibers` and `arithmetic` are what they stand on.
"""

from gwntf.engines.torch.fused.launch import FusedTransport, fused_transport, needs_no_help

__all__ = ["FusedTransport", "fused_transport", "needs_no_help"]
