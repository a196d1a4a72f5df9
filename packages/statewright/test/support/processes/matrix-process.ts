/** One life of the process of the crash matrix; its argument is what may be done about the tool's effect. */
import process from "node:process";
import { crashPoint, logEffect } from "@statewright/testing";
import { kinds, liveMatrix } from "../crash-matrix-run.ts";

const kind = kinds.find((each) => each === process.argv[2]) ?? "idempotent";
console.log(await liveMatrix(kind, { folder: process.cwd(), point: crashPoint, log: logEffect }));
