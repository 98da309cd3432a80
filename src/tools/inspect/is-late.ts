/**
 * Whether a message is still not moved 5 s after its deadline. By then a running process has moved it, even one that
 * stands by, or that misses wake-ups and sweeps every second.
 *
 * `now` is the server's time (epoch ms). A queue without messages has no deadline, and is not late.
 */
export function isLate(deadline: number | undefined, now: number): boolean {
  return deadline !== undefined && now - deadline >= 5000;
}
