"""`python interpreted_first.py PAUSES run ...`: the command, taken to compiled code at a pause.

The process begins interpreted, pauses after every word or few instructions, and takes the run over
at pause PAUSES, whatever is compiled by then.
"""

import os
import sys
from typing import Any

from bhemu.cli import main
from bhemu.cli import run as handover
from bhemu.jit import interpreted

pauses = int(sys.argv.pop(1))
interpreted.chosen = handover.VARIABLE not in os.environ
if interpreted.chosen:
    from bhemu.machine import backend, precompile
    from bhemu.tensix import state

    vars(backend)["LOOK_EVERY"] = vars(state)["TIME_SLICE"] = 1

    class Watch:
        """Stands for compilers that are done at a pause."""

        failed = False

        def __init__(self, parts: Any) -> None:
            self.left = pauses

        def is_compiled(self, machine: Any) -> bool:
            self.left -= 1
            return self.left < 0

        def progress_text(self) -> str:
            return "a pause"

    vars(precompile)["Watch"] = Watch
    vars(handover)["nothing_is_compiled"] = lambda: True
main()
