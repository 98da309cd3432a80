import { RedisError } from "../errors.ts";
import type { Work } from "../redis/troubles.ts";
import { DeadlineTimer } from "../time/deadline-timer.ts";
import { Pause } from "../time/pause.ts";
import { networkTime, presenceTime, queueTime, type Presence, type Time } from "../time/runtime.ts";

/**
 * Something that a process does in the background, again and again: at intervals, when it is woken, or both.
 *
 * Actions never overlap. Woken during an action, the task acts once more after it, however often it was woken. An action
 * returns the milliseconds until the next one; Infinity waits until the task is woken.
 *
 * No failure ends a task. It is reported through the task's {@link Work}, and a growing pause follows, which waking does
 * not cut short. A pause of Infinity leaves the next attempt to whoever wakes the task.
 */
export class Task implements Presence {
  readonly name: string | undefined;
  readonly needs: () => readonly string[];
  readonly #act: () => Promise<number>;
  readonly #cannot: string;
  readonly #work: Work;
  readonly #pause: Pause;
  readonly #isRoutine: () => boolean;
  readonly #time: Time;
  readonly #timer: DeadlineTimer;
  /** Ends the pause after a failure. */
  readonly #retryTimer = new DeadlineTimer(() => this.#begin(), networkTime);
  /** The action that is under way. Never rejects. */
  #acting: Promise<void> | undefined;
  /** Whether it was woken during the action that is under way. */
  #isWoken = false;
  #isPausing = false;
  #isStarted = false;
  #isStopped = false;

  /**
   * `cannot` says in reports what has failed, such as `cannot tidy queue "orders"`. `isRoutine` says whether the next
   * action only looks again, and nothing changes if it comes later. `presence` is given for a task that acts in the time
   * of presence; see {@link Presence}.
   */
  constructor(
    act: () => Promise<number>,
    cannot: string,
    work: Work,
    pause = new Pause(100, 5000),
    isRoutine = () => false,
    presence?: Pick<Presence, "name" | "needs">,
  ) {
    this.name = presence?.name;
    this.needs = presence?.needs ?? (() => []);
    this.#time = presence === undefined ? queueTime : presenceTime;
    this.#timer = new DeadlineTimer(() => this.#begin(), this.#time);
    this.#act = act;
    this.#cannot = cannot;
    this.#work = work;
    this.#pause = pause;
    this.#isRoutine = isRoutine;
  }

  /** Whether no action follows. An action in several steps may end early then. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Whether the next action is a routine, and nothing keeps it from acting when it is due. */
  isSteady(): boolean {
    const isArmed = this.#isStarted && !this.#isStopped && this.#acting === undefined;
    return isArmed && !this.#isPausing && this.#isRoutine();
  }

  /** Acts for the first time in `delay` milliseconds. A second call changes nothing. */
  start(delay = 0): void {
    if (this.#isStarted || this.#isStopped) return;
    this.#isStarted = true;
    this.#arm(delay);
  }

  /** Acts now, or once more after the action that is under way. It need not have been started. */
  wake(): void {
    this.#isStarted = true;
    if (this.#acting !== undefined) this.#isWoken = true;
    else if (!this.#isPausing) this.#begin();
  }

  /** Acts no more; resolves when nothing is under way. An action must not await it. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#clear();
    await this.#acting;
  }

  /** Stops for good. Its owner is leaving, so an open failure is no longer reported. */
  async close(): Promise<void> {
    this.#work.ended();
    await this.stop();
  }

  #begin(): void {
    if (this.#isStopped) return;
    this.#clear();
    this.#isWoken = false;
    this.#isPausing = false;
    this.#acting = this.#tryToAct().then((delay) => {
      this.#acting = undefined;
      if (this.#isStopped) return;
      if (this.#isWoken && !this.#isPausing) this.#begin();
      else this.#arm(delay);
    });
  }

  #arm(delay: number): void {
    if (this.#isPausing) this.#retryTimer.reset(networkTime.now() + delay);
    else this.#timer.reset(this.#time.now() + delay, this.#isRoutine() ? this : undefined);
  }

  #clear(): void {
    this.#timer.clear();
    this.#retryTimer.clear();
  }

  /** Returns the milliseconds until the next action. */
  async #tryToAct(): Promise<number> {
    try {
      const delay = await this.#act();
      this.#work.succeeded();
      this.#pause.reset();
      return delay;
    } catch (error) {
      if (this.#isStopped) return Infinity;
      this.#work.failed(error instanceof RedisError ? error : new RedisError(this.#cannot, error));
      const delay = this.#pause.take();
      this.#isPausing = delay !== Infinity;
      if (!this.#isPausing) this.#work.stopped();
      return delay;
    }
  }
}
