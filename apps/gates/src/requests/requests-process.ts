/** Process that fuzzes a protocol. Arguments: protocol, count, first seed. Prints its report as one line of JSON. */
import process from "node:process";
import { fuzzRequests } from "./fuzz-requests.ts";
import { fuzzedProtocols } from "./random-request.ts";

const [name, count, from] = process.argv.slice(2);
const protocol = fuzzedProtocols.find((known) => known === name);
if (protocol === undefined) throw new Error(`expected one of ${fuzzedProtocols.join(", ")}, got ${name}`);
console.log(JSON.stringify(await fuzzRequests(protocol, Number(count), Number(from))));
