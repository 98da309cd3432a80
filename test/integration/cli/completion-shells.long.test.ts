import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Delayline } from "../../../src/index.ts";
import { CliProcess, COMMAND_WORDS } from "../../helpers/cli.ts";
import { OwnServer } from "../../helpers/own-server.ts";

let server: OwnServer;
let directory: string;

beforeAll(async () => {
  server = await OwnServer.start();
  await using line = new Delayline({ redis: server.url, transfer: false });
  for (const name of ["orders", "outbox:mail", "two words"]) {
    await line.getDelayedQueue(name).offer("x", 3_600_000);
  }
  directory = mkdtempSync(join(tmpdir(), "delayline-completion-"));
  // Completes like the command, and otherwise shows its words.
  writeFileSync(
    join(directory, "delayline"),
    `#!/bin/sh
if [ "$1" = completion ]; then exec ${COMMAND_WORDS.join(" ")} "$@"; fi
for word; do printf '<%s>' "$word"; done
`,
  );
  chmodSync(join(directory, "delayline"), 0o755);
});

afterAll(async () => {
  rmSync(directory, { recursive: true, force: true });
  await server.stop();
});

interface Shell {
  readonly name: "bash" | "zsh" | "fish";
  readonly start: string;
  readonly load: string;
}

const SHELLS: readonly Shell[] = [
  { name: "bash", start: "bash --norc -i", load: 'eval "$(delayline completion bash)"' },
  {
    name: "zsh",
    start: "zsh -f -i",
    load: 'autoload -Uz compinit; compinit -u -D; eval "$(delayline completion zsh)"',
  },
  { name: "fish", start: "fish --no-config", load: "delayline completion fish | source" },
];

const isThere = (program: string) => {
  try {
    execFileSync("which", [program]);
    return true;
  } catch {
    return false;
  }
};

for (const { name, start, load } of SHELLS) {
  const missing = ["script", name].filter((program) => !isThere(program));
  if (missing.length > 0)
    console.warn(`not tested: completion in ${name}: no ${missing.join(", ")}`);

  test.skipIf(missing.length > 0)(`${name} completes at the tab key`, async () => {
    const shell = new CliProcess(["-qec", start, "/dev/null"], {
      words: ["script"],
      env: {
        REDIS_URL: server.url,
        PATH: [directory, process.env["PATH"]].join(delimiter),
        HOME: directory,
        TERM: name === "fish" ? "xterm" : "dumb",
      },
    });
    // The shell reads what is typed meanwhile once it has completed.
    shell.type(`${load}\n`);
    shell.type("delayline doct\t\n");
    shell.type("delayline cancel ord\torder:42 --dry\t\n");
    shell.type("delayline stats outbox:\t\n");
    shell.type("delayline stats tw\t\n");
    shell.type("delayline dead redr\tord\t\n");
    shell.type("exit\n");
    const { stdout } = await shell.ended;
    for (const words of [
      "<doctor>",
      "<cancel><orders><order:42><--dry-run>",
      "<stats><outbox:mail>",
      "<stats><two words>",
      "<dead><redrive><orders>",
    ]) {
      expect(stdout).toContain(words);
    }
  });
}
