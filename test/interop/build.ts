/** `npm run build:java`: compiles the Java side of the tests against Redisson. */
import { buildJava, REDISSON_VERSIONS } from "./java-build.ts";

const failure = await buildJava();
console.log(failure ?? `Compiled against Redisson ${REDISSON_VERSIONS.join(", ")}.`);
if (failure !== undefined) process.exitCode = 1;
