import { decode, encode } from "@jridgewell/sourcemap-codec";

/**
 * A source map for stack traces: where each line comes from, without the column, and without the sources' texts. The
 * full maps are twice as large as the code, and with texts three times.
 *
 * Sources are named by their paths in the repository, `src/...`, seen from the package's root.
 */
export function lineMap(
  file: string,
  map: { readonly sources: string[]; readonly mappings: string },
): string {
  const mappings = decode(map.mappings).map((segments) => {
    const kept: typeof segments = [];
    let [source, line] = [-1, -1];
    for (const segment of segments) {
      if (segment.length === 1 || (segment[1] === source && segment[2] === line)) continue;
      [, source, line] = segment;
      kept.push([segment[0], source, line, segment[3]]);
    }
    return kept;
  });
  const { sources } = map;
  return JSON.stringify({ version: 3, file, sources, names: [], mappings: encode(mappings) });
}
