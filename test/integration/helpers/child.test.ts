import { expect, test } from "vitest";
import { startChild } from "../../helpers/child.ts";
import { collect } from "../../helpers/collect.ts";

const echo = new URL("../../helpers/programs/echo.ts", import.meta.url);

test("talks with a TypeScript program", async () => {
  const child = startChild(echo, { args: ["one"], env: { SETTING: "two" } });
  expect(await child.next()).toBe("ready");

  await child.send({ bytes: Buffer.from([0, 255]) });
  expect(await child.next()).toEqual({
    echo: { bytes: Buffer.from([0, 255]) },
    args: ["one"],
    setting: "two",
  });
});

test("keeps messages that nobody has waited for", async () => {
  const child = startChild<{ echo: number }>(echo);
  await child.send(1);
  await child.send(2);
  expect(await child.next((message) => message.echo === 2)).toMatchObject({ echo: 2 });
  expect(await child.next((message) => message.echo === 1)).toMatchObject({ echo: 1 });
});

test("kills a program", async () => {
  const child = startChild(echo);
  await child.next();
  expect(await child.kill("SIGKILL")).toEqual({ code: null, signal: "SIGKILL" });
  expect(await child.kill()).toEqual({ code: null, signal: "SIGKILL" });
});

test("reports a program that fails during a wait", async () => {
  const child = startChild(echo);
  await child.next();
  await child.send("fail");
  await expect(child.next()).rejects.toThrow(/^echo\.ts ended \(1\) before .*was told to fail/s);
  expect(await child.exit).toEqual({ code: 1, signal: null });
});

test("reports a message that does not come", async () => {
  const child = startChild(echo);
  await child.next();
  await expect(child.next(undefined, 20)).rejects.toThrow("echo.ts in 20 ms did not send");
});

test("returns everything that was sent until the end", async () => {
  const child = startChild<"ready" | { echo: number }>(echo);
  for (const word of [1, 2, 3]) await child.send(word);
  await child.next((message) => message !== "ready" && message.echo === 3);
  expect(await child.release()).toEqual({ code: 0, signal: null });
  expect(await collect(child.messages())).toMatchObject(["ready", { echo: 1 }, { echo: 2 }]);
});

test("reports a program that fails before its end", async () => {
  const child = startChild(echo);
  await child.send("fail");
  await expect(collect(child.messages())).rejects.toThrow(/^echo\.ts ended \(1\); .*told to fail/s);
});
