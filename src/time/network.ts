/**
 * The network's time, under the names of the globals that it stands for: bounds of the wait for replies and connections,
 * and pauses between attempts after a failure. See `runtime.ts`.
 */
import { networkTime } from "./runtime.ts";

export const { setTimeout, clearTimeout, setInterval, clearInterval } = networkTime;

export const performance = { now: networkTime.now };
