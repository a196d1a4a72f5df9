/** One process of the crash matrix; its argument is the recovery kind of the tool. */
import process from "node:process";
import { crashPoint, logEffect } from "@statewright/testing";
import { kinds, runMatrix } from "../crash-matrix-run.ts";

const kind = kinds.find((each) => each === process.argv[2]) ?? "idempotent";
console.log(await runMatrix(kind, { folder: process.cwd(), point: crashPoint, log: logEffect }));
