/* Calls itself in a loop, so that a debugger finds frames, a variable that changes and a line. */

volatile unsigned rounds;

__attribute__((noinline)) static unsigned depth(unsigned n) {
  if (n == 0) {
    rounds = rounds + 1;
    return 1;
  }
  return depth(n - 1) + 1;
}

int main(void) {
  unsigned sum = 0;
  for (;;)
    sum += depth(3);
}

__attribute__((naked, section(".init"))) void _start(void) {
  __asm__("li sp, 0xFFB01FF0\n j main");
}
