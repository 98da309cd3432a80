import { expect, it } from "vitest";
import { documentedRules } from "../../helpers/acl-user.ts";
import { newLine } from "../../helpers/delayline.ts";
import { diagnosis } from "../../helpers/diagnosis.ts";
import { commandsOf, paste } from "../../helpers/pasting.ts";
import { useSoundServer } from "../../helpers/sound-server.ts";

const server = useSoundServer();

/** Without these the doctor cannot ask anything, or says in another finding what it could not look at. */
const OTHERS = new Set(["hello", "auth", "select", "info", "pubsub", "scan", "type"]);

/** Users whose rights are examined at once: an examination mostly waits. */
const AT_ONCE = 8;

it("names each missing command, and the repair that it prints allows it", async () => {
  await newLine({ redis: server.url }).getReliableQueue("orders").offer(1, 600_000);
  const rules = await documentedRules("orders");
  const granted = rules.flatMap((rule) => (rule.startsWith("+") ? [rule.slice(1)] : []));
  const commands = granted.filter((command) => !OTHERS.has(command)).values();
  const examineRest = async () => {
    for (const command of commands) await examine(command, rules);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, examineRest));
});

/** Examines as a user who lacks only this command, repairs that, and examines again. */
async function examine(command: string, rules: readonly string[]): Promise<void> {
  const user = `without-${command.replace("|", "-")}`;
  const rest = rules.filter((rule) => rule !== `+${command}`);
  await server.admin.call("ACL", "SETUSER", user, "reset", "on", ">secret", ...rest);
  const redis = `redis://${user}:secret@127.0.0.1:${server.port}`;
  const look = async () =>
    (await diagnosis({ redis, queues: ["orders"] })).filter(
      ({ check, what }) =>
        ["access", "refused", "reachable", "usable"].includes(check) &&
        // Without eval some commands cannot be tried.
        !what.includes("could not be tried"),
    );
  const found = await look();
  expect(found, command).toHaveLength(1);
  const [, said = ""] = /may not run (.*) on /.exec(found[0]?.what ?? "") ?? [];
  // The rule for a command covers its subcommands.
  const isOfCommand = (one: string) => one === command || one.startsWith(`${command}|`);
  expect(said.split(", ").every(isOfCommand), `${command}: ${found[0]?.what}`).toBe(true);
  for (const repair of commandsOf(found[0]!)) await paste(repair);
  expect(await look(), command).toEqual([]);
}
