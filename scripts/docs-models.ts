import { ALL_MODELS, type Model } from "../test/models/models.ts";
import { MODEL_WORDS } from "../test/models/words.ts";

// The tables of docs/project/models/models.md, by the marks that they stand behind: `OffersPromises`, ...

/** The tables of every model. */
export const MODEL_TABLES: Readonly<Record<string, () => string>> = Object.fromEntries(
  ALL_MODELS.flatMap((model) => [
    [`${model.name}Promises`, () => promises(model)],
    [`${model.name}Mutants`, () => mutants(model)],
    ...(model.limits.length > 0 ? [[`${model.name}Limits`, () => limits(model)] as const] : []),
  ]),
);

function promises({ name }: Model): string {
  const rows = Object.entries(wordsOf(name).promises).map(([promise, text]) => [
    `\`${promise}\``,
    text,
  ]);
  return table(["promise", "in words"], rows);
}

function mutants({ name, mutants: all }: Model): string {
  const breaks = new Map<string, string[]>();
  for (const { mutant, breaks: promise } of all) {
    breaks.set(mutant, [...(breaks.get(mutant) ?? []), `\`${promise}\``]);
  }
  const rows = [...breaks].map(([mutant, broken]) => [
    `"${mutant}"`,
    textOf(wordsOf(name).mutants, mutant),
    broken.join(", "),
  ]);
  return table(["mutant", "what is changed", "what breaks"], rows);
}

function limits({ name, limits: all }: Model): string {
  const rows = all.map(({ promise }) => [`\`${promise}\``, textOf(wordsOf(name).limits, promise)]);
  return table(["limit", "how it breaks"], rows);
}

function wordsOf(model: string) {
  const words = MODEL_WORDS[model];
  if (words === undefined) throw new Error(`test/models/words.ts has nothing about ${model}`);
  return words;
}

function textOf(texts: Readonly<Record<string, string>>, name: string): string {
  const text = texts[name];
  if (text === undefined) throw new Error(`test/models/words.ts does not say what "${name}" is`);
  return text;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "-"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
