/** `npm run demo`: runs an agent graph on a real source tree. */
import { enableCompileCache } from "node:module";
import { join } from "node:path";

// The demo starts one process per act: later processes load the code compiled by the first process.
enableCompileCache(join(import.meta.dirname, "../../../node_modules/.cache/node"));

const { main } = await import("./main.ts");
process.exitCode = await main(process.argv.slice(2));
