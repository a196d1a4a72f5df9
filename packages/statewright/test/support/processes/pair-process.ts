/** Runs a share of the crash pairs: kind, folder, every, part, parts; prints the report as a line of JSON. */
import process from "node:process";
import { kinds } from "../crash-matrix-run.ts";
import { runPairs } from "../crash-pairs.ts";

const [name, folder = ".", ...numbers] = process.argv.slice(2);
const [every = 1, part = 0, parts = 1] = numbers.map(Number);
const kind = kinds.find((each) => each === name);
if (kind === undefined) throw new Error(`${name} is none of ${kinds.join(", ")}`);
console.log(JSON.stringify(await runPairs(kind, folder, { every, part, parts })));
