import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { parse } from "yaml";

interface Service {
  readonly image: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly command: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
}

const root = new URL("../../", import.meta.url);

async function services(): Promise<Record<string, Service>> {
  const text = await readFile(new URL("docker-compose.yml", root), "utf8");
  return (parse(text) as { readonly services: Record<string, Service> }).services;
}

test("an image is built by one service; others that use it wait for that one", async () => {
  const all = Object.entries(await services());
  const builders = all.filter(([, { build }]) => build !== undefined);
  expect(builders).toHaveLength(1);
  const [name, { image }] = builders[0] as [string, Service];
  const users = all.filter(([user, service]) => service.image === image && user !== name);
  expect(users.length).toBeGreaterThan(0);
  for (const [, service] of users) expect(Object.keys(service.depends_on ?? {})).toContain(name);
});

test("the image is built from files that are there, and runs examples that are there", async () => {
  for (const { build, image, command } of Object.values(await services())) {
    if (image !== "delayline-examples") continue;
    const [file = ""] = command;
    await expect(readFile(new URL(file, root), "utf8")).resolves.toContain("delayline");
    if (build === undefined) continue;
    const dockerfile = await readFile(
      new URL(build.dockerfile, new URL(build.context, root)),
      "utf8",
    );
    expect(dockerfile.match(/^FROM .*$/gm)).toEqual([
      "FROM node:24-slim AS package",
      "FROM node:24-slim",
    ]);
  }
});
