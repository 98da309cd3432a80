import { expect, onTestFinished } from "vitest";
import type { Part } from "../../src/partitions/parts/part.ts";
import type { DelaylineError } from "../../src/errors.ts";
import type { Elements } from "../../src/lua/family.ts";
import { redisUrl } from "./redis.ts";
import { newPart } from "./part.ts";
import { newServer } from "./server.ts";

interface OpenQueueOptions {
  readonly url?: string;
  readonly elements?: Elements;
  /** Whether the test causes errors; otherwise an error fails it. Defaults to false. */
  readonly mayFail?: boolean;
}

/** One open queue with a client of its own. It ends with the test, or when it is closed. */
export interface TestQueue {
  readonly open: Part;
  /** The errors reported so far. */
  readonly errors: readonly DelaylineError[];
  readonly close: () => Promise<void>;
}

/** Opens a queue below the users' classes, on the shared Redis by default. */
export function newOpenQueue(
  name: string,
  { url = redisUrl(), elements = "addresses", mayFail = false }: OpenQueueOptions = {},
): TestQueue {
  const errors: DelaylineError[] = [];
  const report = (error: DelaylineError) => void errors.push(error);
  const server = newServer({ url, report });
  const open = newPart(name, server, elements);
  let closing: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    await open.stopTaking();
    await open.close();
    server.close();
  };
  const close = () => (closing ??= end());
  onTestFinished(async () => {
    await close();
    if (!mayFail) expect(errors).toEqual([]);
  });
  return { open, errors, close };
}
