"""Past one machine: sites train where they are, a server fuses, and every site gets the fused model back.

`Answers` is one round, whatever carries it; `pack` and `unpack` are what travels, with the checks of files.
`modelweld.federate.flower` brings a round to Flower, `modelweld.federate.nvflare` to NVIDIA FLARE: docs/federate.md.
"""

from modelweld.federate.round import Answers, pack, pack_fused, unpack

__all__ = ["Answers", "pack", "pack_fused", "unpack"]
