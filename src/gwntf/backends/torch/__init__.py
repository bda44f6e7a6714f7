"""Arrays and arithmetic of torch, on the CPU or on a GPU.

May import `core`, the rest of `backends` and torch. Start with `backend`; `fused` holds transports in Triton,
`recording` replays iterations, `arrays` are the ways in, `namespace` is torch in the names of the array API standard,
`sparse` a product with few entries, `memory` what happens when the device has too little of it.
"""
