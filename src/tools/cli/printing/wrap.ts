/** Breaks a line at 80 characters and indents the rest by `indent`. A word that is too long stays whole. */
export function wrap(line: string, indent = 0): string[] {
  if (line.length <= WIDTH) return [line];
  const at = line.lastIndexOf(" ", WIDTH);
  if (at <= indent) return [line];
  return [line.slice(0, at), ...wrap(" ".repeat(indent) + line.slice(at + 1), indent)];
}

const WIDTH = 80;
