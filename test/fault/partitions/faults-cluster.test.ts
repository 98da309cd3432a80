import { test } from "vitest";
import { endureAll, LONGEST } from "./endure.ts";
import { Site } from "./site.ts";

test(
  "plain and reliable, on a Cluster: no fault loses a message, or has one twice or early",
  () => endureAll(() => Site.ofCluster()),
  LONGEST,
);
