import { describe, expect, inject, test } from "vitest";
import { ALL_MODELS } from "./models.ts";
import { check } from "./tlc.ts";

// The models in docs/project/models hold, and break as they should: each mutant breaks the promise that it names, and each limit
// of a promise is one. `npm run soak` also checks what takes minutes.

const isSoak = process.env["MODELS"] === "long";

const reason = inject("whyNoTlc");
const isSkipped = reason !== "" && !process.env["CI"];

describe.skipIf(isSkipped).each(ALL_MODELS)("$name", (model) => {
  const { name, configurations, more = [], mutants, limits } = model;
  const [first] = configurations;

  test.each([...configurations, ...(isSoak ? more : [])])(
    "%s: every promise holds",
    async (configuration) => {
      if (reason !== "") throw new Error(`TLC cannot be run: ${reason}`);
      const { holds, states, output } = await check(name, configuration);
      if (!holds) throw new Error(output);
      expect(states).toBeGreaterThan(100);
    },
  );

  test.each(mutants.filter(({ isLong }) => isSoak || !isLong))(
    "$mutant breaks $breaks",
    async ({ mutant, breaks, configuration }) => {
      if (reason !== "") throw new Error(`TLC cannot be run: ${reason}`);
      await expectBroken(configuration, breaks, { mutant });
    },
  );

  test.each(limits)("$promise does not hold", async ({ promise, configuration }) => {
    if (reason !== "") throw new Error(`TLC cannot be run: ${reason}`);
    await expectBroken(configuration, promise, {});
  });

  async function expectBroken(
    configuration: string = first,
    only: string,
    { mutant }: { readonly mutant?: string },
  ): Promise<void> {
    const { broken, output } = await check(name, configuration, {
      only,
      ...(mutant && { mutant }),
    });
    expect([only, "a property"], output).toContain(broken);
  }
});
