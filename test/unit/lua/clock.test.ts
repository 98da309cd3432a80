import { readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { offer } from "../../../src/lua/delayed/offer.ts";
import { scriptAt } from "../../helpers/script-at.ts";

const lua = fileURLToPath(new URL("../../../src/lua", import.meta.url));

test("only one fragment reads the server's clock, so a test can stop the clock of any script", () => {
  const readers = readdirSync(lua, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .filter((file) => /call\(\s*"TIME"/i.test(readFileSync(join(lua, file), "utf8")));
  expect(readers.map((file) => file.split(sep).join("/"))).toEqual(["fragments/clock.ts"]);
});

/** The text of the fragment `clock` in a script. */
function clockOf(text: string): string {
  return /local function clock\(\).*?\bend\n/s.exec(text)?.[0] ?? "";
}

test("a script whose clock is stopped differs in nothing but the clock", () => {
  const stopped = scriptAt(1.5, offer);
  expect(clockOf(stopped.lua)).toContain("return 1500");
  expect(stopped.lua.replace(clockOf(stopped.lua), "")).toBe(
    offer.lua.replace(clockOf(offer.lua), ""),
  );
});
