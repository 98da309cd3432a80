import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Report } from "./order.ts";

/** A worker of the demo: a process of its own. */
export interface CrewMember {
  readonly name: string;
  readonly pid: number;
  /** The order in its hands. */
  readonly holds: number | undefined;
}

/** A worker as the demo names it. */
export function titleOf({ name, pid }: CrewMember): string {
  return `${name} (pid ${pid})`;
}

/** What a crew tells. */
export interface CrewEvents {
  report(member: CrewMember, report: Report): void;
  /** A worker has ended without being asked to. */
  exit(member: CrewMember, isLast: boolean): void;
}

interface Running extends CrewMember {
  readonly child: ChildProcess;
  holds: number | undefined;
}

/** The worker processes of the demo. They end with this process, however it ends. */
export class Crew implements AsyncDisposable {
  readonly #redis: string;
  readonly #queue: string;
  readonly #events: CrewEvents;
  readonly #members = new Set<Running>();
  #hired = 0;
  #isEnding = false;

  constructor(redis: string, queue: string, events: CrewEvents) {
    this.#redis = redis;
    this.#queue = queue;
    this.#events = events;
  }

  /**
   * Starts a worker; resolves once it takes orders.
   *
   * @throws {Error} if it ends before.
   */
  async hire(signal: AbortSignal): Promise<CrewMember> {
    const [file = ""] = process.argv.slice(1);
    const child = spawn(
      process.execPath,
      [...process.execArgv, file, "demo", "worker", this.#queue],
      {
        env: { ...process.env, REDIS_URL: this.#redis },
        // Ctrl-C in the terminal must not reach it: it may have to finish its order.
        detached: true,
        stdio: ["ignore", "ignore", "inherit", "ipc"],
      },
    );
    await once(child, "spawn", { signal });
    const ready = once(child, "message", { signal });
    const member: Running = {
      name: `worker-${++this.#hired}`,
      pid: child.pid as number,
      child,
      holds: undefined,
    };
    this.#members.add(member);
    child.once("exit", () => {
      this.#members.delete(member);
      if (!this.#isEnding) this.#events.exit(member, this.#members.size === 0);
    });
    child.on("message", (report: Report) => {
      if (report.what === "ready") return;
      member.holds = report.what === "taken" ? report.order : undefined;
      this.#events.report(member, report);
    });
    const ended = once(child, "exit", { signal }).then(([code, by]) => {
      throw new Error(`${member.name} ended with ${String(code ?? by)} before it was ready`);
    });
    // It may also end later.
    ended.catch(() => {});
    await Promise.race([ready, ended]);
    return member;
  }

  /** Kills a worker, if possible one in the middle of its work. Returns whether there is one. */
  kill(): boolean {
    const members = [...this.#members];
    const victim = members.find(({ holds }) => holds !== undefined) ?? members[0];
    return victim?.child.kill("SIGKILL") ?? false;
  }

  /** Lets every worker finish its order, and waits for its end. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true;
    await Promise.all(
      [...this.#members].map(async ({ child }) => {
        const exited = once(child, "exit");
        // One that was just killed has no channel any more.
        if (child.connected) child.disconnect();
        await exited;
      }),
    );
  }
}
