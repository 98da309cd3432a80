/** A setup file of the unit tests: `vi.useFakeTimers()` stops the library's time. */
import { followGlobals } from "./follow-globals.ts";

followGlobals();
