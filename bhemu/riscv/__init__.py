"""The baby RISC-V cores: engine, traps, missing instructions, registers and disassembly."""
