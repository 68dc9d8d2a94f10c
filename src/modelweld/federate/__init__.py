"""Past one machine: sites train where they are, a server fuses, and every site gets the fused model back.

`Answers` is one round, whatever carries it; `packed` and `unpacked` are what travels, with the checks of files.
`modelweld.federate.flower` brings a round to Flower, `modelweld.federate.nvflare` to NVIDIA FLARE: docs/federate.md.
"""

from modelweld.federate.round import Answers, packed, returned, unpacked

__all__ = ["Answers", "packed", "returned", "unpacked"]
