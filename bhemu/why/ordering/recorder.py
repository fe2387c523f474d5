"""One walk of a tile of a chip that looks at its requests to the NoC and at what is answered."""

import itertools

from bhemu.machine.machine import Chip
from bhemu.machine.tile import Tile
from bhemu.why.check import Context
from bhemu.why.network.unanswered import Unanswered
from bhemu.why.walk import ChipWalk, Instruction, Walk

_CHIPS = 150_000  # steps of a tile of a chip
_TILES = 4  # of a chip, more where more kinds of them are
_HANGS = 20_000  # steps of a program that goes on for ever


class Recorder:
    """One walk of a tile."""

    def __init__(self, tile: Tile, chip: Chip) -> None:
        self.tile, self._chip = tile, chip
        self.unanswered = Unanswered(tile)
        self.ended = False  # the walk has come to the program's end
        self.steps = Walk(tile, instruction=self._instruction)

    def walk(self, most: int) -> None:
        """To the end of the program, at most `most` steps."""
        self.ended = ChipWalk(self._chip, [self.steps]).run(most)

    def _instruction(self, step: Instruction) -> None:
        self.unanswered.instruction(step, step.access())


def recorded(context: Context) -> list[Recorder]:
    """The walks of some tiles of each kind of a program of a chip; checks share them."""
    if "recorders" not in context.facts:
        few = filter(context.steps, context.few(context.symptom.machine, 2 * _CHIPS))
        most = max(_TILES, len(context.kinds))
        chosen = {tile.xy for tile in itertools.islice(few, most)}
        context.facts["recorders"] = [_recorded(context, xy) for xy in sorted(chosen)]
    found: list[Recorder] = context.facts["recorders"]
    return found


def _recorded(context: Context, xy: tuple[int, int]) -> Recorder:
    machine = context.launch(engine="compiled")
    recorder = Recorder(machine.tile[xy], machine)
    recorder.walk(_HANGS if context.symptom.hangs else _CHIPS)
    context.work.walked([recorder.steps])
    return recorder
