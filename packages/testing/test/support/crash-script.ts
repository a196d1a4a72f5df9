/** Script with three crash points in each of two processes. */
import { existsSync, writeFileSync } from "node:fs";
import process from "node:process";
import { crashPoint, logEffect, restartExitCode } from "@statewright/testing";

crashPoint("one");
logEffect({ process: existsSync("half") ? 2 : 1 });
crashPoint("two");
if (existsSync("half")) console.log("done");
else {
  writeFileSync("half", "");
  process.exitCode = restartExitCode;
}
crashPoint("three");
