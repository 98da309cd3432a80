import { expect, test } from "vitest";
import { COMMANDS, type CommandName } from "../../../src/tools/cli/commands.ts";
import { helpOf, overview } from "../../../src/tools/cli/help.ts";
import { COMMON, COMMON_HELP } from "../../../src/tools/cli/session/command.ts";
import { readPage, wordsIn } from "../docs/pages.ts";

const NAMES = Object.keys(COMMANDS) as CommandName[];
const PAGE = readPage("docs/guide/cli.md");

/** The first word of a summary: a verb in the third person. */
const VERB = /^(?:does not|[a-z]+s)\b/;

test("every summary of a command, and of an option, says what it does", async () => {
  for (const name of NAMES) {
    expect(COMMANDS[name].summary).toMatch(VERB);
    const { help, optionHelp } = await COMMANDS[name].load();
    expect(help.toLowerCase(), name).toMatch(VERB);
    for (const text of Object.values(optionHelp)) expect(text, name).toMatch(VERB);
  }
  for (const text of Object.values(COMMON_HELP)) expect(text).toMatch(VERB);
});

test("help prints each option with its short form and its value", async () => {
  const help = helpOf(await COMMANDS.cancel.load());
  expect(help).toMatch(/^ {2}-y, --yes {2,}\S/m);
  expect(help).toMatch(/^ {6}--prefix <prefix> {2,}\S/m);
  expect(overview()).toMatch(/^ {2}-h, --help {2,}\S/m);
});

test("no list in a help text is broken over lines", async () => {
  for (const name of NAMES) {
    const { help } = await COMMANDS[name].load();
    const items = help.split("\n").filter((line) => line.startsWith(" "));
    for (const item of items) expect(item.length, item).toBeLessThanOrEqual(80);
  }
});

test("the guide lists every command and every common option", () => {
  const section = /^## Commands$(.*?)^Options of every command/ms.exec(PAGE.text)?.[1];
  const words = new Set(wordsIn(section).map((usage) => usage.split(" ")[0]));
  for (const name of NAMES) expect(words).toContain(name);
  for (const name of Object.keys(COMMON)) expect(PAGE.text).toContain(`\`--${name}`);
});
