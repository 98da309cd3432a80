import { tell } from "../../../scripts/child/parent.ts";

/** A program that sends back what it is sent, and fails when it is sent "fail". */
process.on("message", (message) => {
  if (message === "fail") throw new Error("was told to fail");
  void tell({ echo: message, args: process.argv.slice(2), setting: process.env["SETTING"] });
});
await tell("ready");
