import { tell } from "../../../scripts/child/parent.ts";

/** A program that echoes messages, and fails on "fail". */
process.on("message", (message) => {
  if (message === "fail") throw new Error("was told to fail");
  void tell({ echo: message, args: process.argv.slice(2), setting: process.env["SETTING"] });
});
await tell("ready");
