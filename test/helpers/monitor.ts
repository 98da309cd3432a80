import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";
import { eventually } from "./eventually.ts";
import { newRedis, redisUrl } from "./redis.ts";

/** Returns the commands that clients have sent so far, each as its words, in the server's order. */
export type Watched = () => Promise<string[][]>;

/**
 * Watches the commands that clients send to Redis with `word` among their words. Commands called by scripts do not
 * count. Bytes that are not text are shown escaped.
 *
 * Uses a socket of its own: ioredis throws if a command is seen before the reply to MONITOR.
 */
export async function watchCommands(word: string, url = redisUrl()): Promise<Watched> {
  const { hostname, port, username, password } = new URL(url);
  const socket = connect(Number(port || 6379), hostname);
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");

  const marks = new Set<string>();
  const commands: string[][] = [];
  createInterface({ input: socket }).on("line", (line) => {
    // +1755757960.123456 [0 127.0.0.1:5000] "get" "key"; `[0 lua]` for what a script calls.
    const [, source = "", rest = ""] = /^\+[\d.]+ \[\d+ ([^\]]+)\] (.*)$/.exec(line) ?? [];
    const words = [...rest.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text = ""]) => text);
    if (source === "lua") return;
    if (words[0]?.toLowerCase() === "echo") marks.add(words[1] ?? "");
    else if (words.includes(word)) commands.push(words);
  });
  if (password !== "") socket.write(`AUTH ${username || "default"} ${password}\r\n`);
  socket.write("MONITOR\r\n");

  const redis = newRedis(url);
  // Once a mark has been seen, no later command is missed.
  await eventually(async () => {
    await redis.echo(randomUUID());
    return marks.size > 0;
  });
  return async () => {
    // The server runs one command after the other, so every command before the mark has been seen.
    const mark = randomUUID();
    await redis.echo(mark);
    await eventually(() => marks.has(mark));
    return commands;
  };
}
