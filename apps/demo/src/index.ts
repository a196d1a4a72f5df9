/** `npm run demo`: an agent graph at work on a real source tree. */
import { enableCompileCache } from "node:module";
import { join } from "node:path";

// The demo starts a process for each act: what the first one compiled, the others only load.
enableCompileCache(join(import.meta.dirname, "../../../node_modules/.cache/node"));

const { main } = await import("./main.ts");
process.exitCode = await main(process.argv.slice(2));
