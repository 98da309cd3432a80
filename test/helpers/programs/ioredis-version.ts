/** A program that tells which version of ioredis it gets. */
import ioredis from "ioredis/package.json" with { type: "json" };
import { tell } from "../../../scripts/child/parent.ts";

await tell(ioredis.version);
