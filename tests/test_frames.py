"""How far it is from Tile.run to the arithmetic of a pushed word, in frames of interpreted code.

The instruction FIFO is full, so that the store that pushes the next word lets the threads run: all
rooms between the run loop and a unit lie on the way. Whoever follows an MVMUL in a debugger walks
through these frames.
"""

import json
import os
import subprocess
import sys

PROGRAM = """
import json, sys
from bhemu.machine.tile import Tile
from bhemu.riscv.assembly import PARK, PUSH, T0, T1, code, li, sw
from bhemu.tensix.state import FIFO_DEPTH

HERE = 0x10000
tile = Tile(engine="compiled")
pushes = [sw(T1, T0)] * (FIFO_DEPTH + 1)
tile.write(HERE, code(li(T0, PUSH), li(T1, 0x26 << 24), *pushes, PARK))
tile.core["trisc1"].set_reset_pc(HERE)
tile.core["trisc1"].release()
tile.state.src_valid[:] = 1
frames = []

def look(frame, event, _):
    if event == "call" and frame.f_code.co_name.endswith("sums") and not frames:
        while frame is not None:
            module = frame.f_globals["__name__"].removeprefix("bhemu.")
            frames.insert(0, f"{module}: {frame.f_code.co_qualname}")
            frame = frame.f_back

sys.setprofile(look)
tile.run()
sys.setprofile(None)
print(json.dumps(frames[1:]))  # without this module's own
"""
MOST = 24


def test_frames_between_run_and_the_arithmetic_of_a_pushed_word() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    frames = json.loads(run.stdout)
    assert "machine.run: RunLoop.run" in frames and "riscv.access: store" in frames, frames
    assert len(frames) <= MOST, "\n".join(f"{n:3} {name}" for n, name in enumerate(frames, 1))
