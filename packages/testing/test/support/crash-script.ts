/** A script that comes to three points in each of two lives. */
import { existsSync, writeFileSync } from "node:fs";
import process from "node:process";
import { crashPoint, logEffect, restartExitCode } from "@statewright/testing";

crashPoint("one");
logEffect({ life: existsSync("half") ? 2 : 1 });
crashPoint("two");
if (existsSync("half")) console.log("done");
else {
  writeFileSync("half", "");
  process.exitCode = restartExitCode;
}
crashPoint("three");
