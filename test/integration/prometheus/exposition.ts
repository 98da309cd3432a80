import type { Registry } from "prom-client";

/** A registry's output: each value by its name and labels, such as `delayline_ready{queue="a"}`. */
export async function scrape(registry: Pick<Registry, "metrics">): Promise<Map<string, number>> {
  const text = await registry.metrics();
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(" ");
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}
