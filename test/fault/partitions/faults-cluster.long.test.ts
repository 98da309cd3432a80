import { test } from "vitest";
import { endureAll, LONGEST } from "./endure.ts";
import { Site } from "./site.ts";

test(
  "plain and reliable, on a Cluster: no fault makes a message lost, duplicated or early",
  () => endureAll(() => Site.ofCluster()),
  LONGEST,
);
