import type { Child } from "../../../scripts/child/child.ts";
import { startChild } from "../../helpers/child.ts";
import { bundle } from "../../helpers/bundle.ts";

/** How many messages the short forms use; `npm run soak` raises it. */
export const { RELIABLE_MESSAGES } = process.env;
export const MESSAGES = Number(RELIABLE_MESSAGES ?? 4_000);

/** Processes that handle messages, and loaded spares that wait to replace dead ones. */
export class Crew {
  readonly #program: URL;
  readonly #env: NodeJS.ProcessEnv;
  readonly #working: Child[] = [];
  readonly #spares: Child[] = [];
  #kills = 0;

  private constructor(program: URL, env: NodeJS.ProcessEnv) {
    this.#program = program;
    this.#env = env;
  }

  /** Starts `count` workers with the environment `env`. Resolves when they work. They end with the test. */
  static async start(
    count: number,
    env: NodeJS.ProcessEnv,
    spares = 0,
    program = new URL("../workers/reliable-worker.ts", import.meta.url),
  ): Promise<Crew> {
    const crew = new Crew(await bundle(program), env);
    for (let i = 0; i < count + spares; i++) crew.#spare();
    for (let i = 0; i < count; i++) await crew.#engage();
    return crew;
  }

  /** How many have been killed. */
  get kills(): number {
    return this.#kills;
  }

  /** Kills one at random (SIGKILL), and puts a spare in its place. */
  async replaceOne(): Promise<void> {
    const [victim] = this.#working.splice(Math.floor(Math.random() * this.#working.length), 1);
    await victim?.kill("SIGKILL");
    this.#kills++;
    this.#spare();
    await this.#engage();
  }

  /** Sends a word to all current and future workers. */
  async say(word: string): Promise<void> {
    this.#env["WORK"] = word;
    for (const child of [...this.#working, ...this.#spares]) await child.send(word);
  }

  /** Resolves when all workers have replied, which shows that they live. */
  async areThere(): Promise<void> {
    for (const child of this.#working) {
      await child.send("there?");
      await child.next((word) => word === "here");
    }
  }

  #spare(): void {
    this.#spares.push(startChild(this.#program, { env: this.#env }));
  }

  async #engage(): Promise<void> {
    const child = this.#spares.shift() as Child;
    await child.next((word) => word === "loaded", 30_000);
    await child.send("go");
    this.#working.push(child);
  }
}
