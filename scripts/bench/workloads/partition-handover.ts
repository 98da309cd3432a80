import { setTimeout as sleep } from "node:timers/promises";
import type { Figure } from "../figure.ts";
import { Program } from "../program.ts";
import type { MemberMethods } from "../programs/member.ts";
import { Site } from "../site.ts";
import type { Round, Workload } from "../workload.ts";

type Member = Program<MemberMethods>;

/** How long messages of a partition wait while it passes from one exclusive consumer to another. */
export const partitionHandover: Workload = {
  name: "partition-handover",
  group: "partitions",
  title: "the longest wait of a message while exclusive consumers come and go, 200/s, 6 partitions",
  round: comeAndGo,
};

async function comeAndGo({ progress }: Round): Promise<Figure[]> {
  const starting = Array.from({ length: 4 }, () => Program.start<MemberMethods>("member"));
  await using site = await Site.start();
  const members = await Promise.all(starting);
  const [producer, first, second, third] = members as [Member, Member, Member, Member];
  try {
    const plan = {
      address: site.address,
      kind: "reliable" as const,
      partitions: 6,
      isExclusive: true,
    };
    await Promise.all(members.map((member) => member.call("open", plan)));
    await producer.call("offerSteadily", 1, RATE, 0, 0);
    await first.call("consume", 1, 1);
    await second.call("consume", 1, 1);
    await producer.call("offerSteadily", SETTLING * RATE, RATE, 0, 0);

    /** Offers for `seconds` while something happens. Returns the longest wait. */
    const longest = async (
      seconds: number,
      those: readonly Member[],
      event?: () => Promise<void>,
    ) => {
      await sleep(500);
      for (const member of those) await member.call("handled");
      const offering = producer.call("offerSteadily", seconds * RATE, RATE, 0, 0);
      await sleep(1000);
      await event?.();
      await offering;
      await sleep(500);
      const handled = await Promise.all(those.map((member) => member.call("handled")));
      return Math.max(...handled.flatMap(({ lateness }) => lateness));
    };
    progress("two, and nothing happens");
    const calm = await longest(4, [first, second]);
    progress("a third one joins");
    const all = [first, second, third];
    const join = await longest(4, all, () => third.call("consume", 1, 1));
    progress("the first one leaves");
    const leave = await longest(4, all, () => first.call("close"));
    progress("the second one is killed");
    const kill = await longest(6, [third], () => second.kill());
    return [
      { name: "while nothing happens", value: calm, unit: "ms" },
      { name: "one joins", value: join, unit: "ms", goal: { atMost: 1000 } },
      { name: "one leaves", value: leave, unit: "ms", goal: { atMost: 1000 } },
      { name: "one is killed", value: kill, unit: "ms", goal: { atMost: 3000 } },
    ];
  } finally {
    await Promise.all([producer, first, third].map((member) => member.call("close")));
    await Promise.all(members.map((member) => member[Symbol.asyncDispose]()));
  }
}

/** Messages a second. */
const RATE = 200;

/** Seconds in which two consumers share the partitions. */
const SETTLING = 5;
