/** One process of the crash matrix; its arguments are the recovery kind of the tool, and `hook` for a hook before calls. */
import process from "node:process";
import { crashPoint, logEffect } from "@statewright/testing";
import { kinds, runMatrix } from "../crash-matrix-run.ts";

const kind = kinds.find((each) => each === process.argv[2]) ?? "idempotent";
const hasHook = process.argv[3] === "hook";
console.log(await runMatrix(kind, { folder: process.cwd(), point: crashPoint, log: logEffect, hasHook }));
