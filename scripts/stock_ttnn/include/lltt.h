// The REPLAY instruction as sfpi's header of this name offers it, by stores to the thread's FIFO.
#pragma once

#include <cstdint>

namespace lltt {

enum ExecBool : bool { NoExec, Exec };

constexpr std::uint32_t replay_insn(
    std::uint32_t start, std::uint32_t length, bool execute = false, bool load = false) {
    return 0x04u << 24 | start << 14 | length << 4 | std::uint32_t(execute) << 1 | std::uint32_t(load);
}

[[gnu::always_inline]] inline void push(std::uint32_t word) {
    *reinterpret_cast<volatile std::uint32_t *>(0xFFE40000) = word;
}

template <ExecBool execute = NoExec>
[[gnu::always_inline]] inline void record(std::uint32_t start, std::uint32_t length) {
    push(replay_insn(start, length, execute == Exec, true));
}

[[gnu::always_inline]] inline void replay(std::uint32_t start, std::uint32_t length) {
    push(replay_insn(start, length));
}

}  // namespace lltt
