import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

// Prints what an installed Delayline brings along, in CycloneDX, from the lock file alone: `npm run sbom`. Each release
// has it as a file. (`npm sbom --omit dev` of npm 11 leaves out everything, so what is for development goes here.)

const ROOT = fileURLToPath(new URL("../", import.meta.url));

const DEVELOPMENT = "cdx:npm:package:development";

interface Component {
  readonly "bom-ref": string;
  readonly name: string;
  readonly purl: string;
  readonly properties?: readonly { readonly name: string }[];
}

interface Sbom {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** The packages that are needed at run time, and which needs which. Asks nobody. */
export function sbom(): Sbom {
  const args = ["sbom", "--offline", "--package-lock-only", "--sbom-format=cyclonedx"];
  const all = JSON.parse(
    execFileSync("npm", args, { cwd: ROOT, encoding: "utf8", maxBuffer: 2 ** 26 }),
  ) as Sbom;
  const components = all.components.filter(
    ({ properties = [] }) => !properties.some(({ name }) => name === DEVELOPMENT),
  );
  const { component } = all.metadata;
  const refs = new Set([component, ...components].map((one) => one["bom-ref"]));
  return {
    ...all,
    // npm takes the name of the folder.
    metadata: { ...all.metadata, component: { ...component, name: "delayline" } },
    components,
    dependencies: all.dependencies
      .filter(({ ref }) => refs.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => refs.has(one)) })),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(JSON.stringify(sbom(), undefined, 2));
}
