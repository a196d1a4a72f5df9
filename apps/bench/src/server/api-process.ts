/**
 * Process of a server: starts the server of a module with its files in a folder, and returns its CPU time per message.
 * Arguments: URL of the module, folder.
 */
import process from "node:process";
import type { StartApiServer } from "./api-server.ts";

const [entry = "", folder = ""] = process.argv.slice(2);
const { start } = (await import(entry)) as { readonly start: StartApiServer };
const { port, requests } = await start(folder);

process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
process.on("disconnect", () => process.exit());
process.send?.({ port, requests });
