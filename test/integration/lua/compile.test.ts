import { expect, test } from "vitest";
import { virtualScript } from "../../../src/adapters/testing/clock/virtual-script.ts";
import { guarded } from "../../../src/lua/guarded.ts";
import type { Script } from "../../../src/lua/script.ts";
import { formTogether } from "../../../src/lua/together.ts";
import { newRedis } from "../../helpers/redis.ts";
import { allScripts } from "../../helpers/scripts.ts";

type AnyScript = Script<string, string, unknown, never>;

/** Lua allows a function 200 local variables and 60 variables from outside: the next fragment may be one too many. */
test("Redis compiles every form of every script", async () => {
  const redis = newRedis();
  const scripts = (await allScripts()) as unknown as AnyScript[];
  const forms = scripts.flatMap((script) => {
    const both = [script, guarded(script)];
    return [...both, ...both.map((form) => formTogether(form, 2))];
  });
  const refused: string[] = [];
  for (const form of forms) {
    for (const lua of [form.lua, virtualScript(form).lua]) {
      const error = await redis.script("LOAD", lua).then(
        () => undefined,
        (reason: Error) => reason.message,
      );
      if (error !== undefined) refused.push(`${form.name}: ${error}`);
    }
  }
  expect(forms.map(({ name }) => name)).toContain("sweep-paced-to-stream-guarded-together");
  expect(refused).toEqual([]);
});

test("a script with too many local variables is refused by Redis only when it is compiled", async () => {
  const lua = Array.from({ length: 201 }, (_, i) => `local name${i} = ${i}`).join("\n");
  await expect(newRedis().script("LOAD", lua)).rejects.toThrow("more than 200 local variables");
});
