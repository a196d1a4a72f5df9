/** A process with several writers at once, each on a thread of its own; says how many commits were told, and what failed. */
import process from "node:process";
import { sqliteStore } from "@statewright/sqlite";
import { graph, superstep, tell } from "../rows.ts";

const [file = "", name = "", writers = "", commits = ""] = process.argv.slice(2);
const store = sqliteStore(file);
const failures: string[] = [];

async function writer(thread: string): Promise<void> {
  const claim = await store.claim({ ...graph, thread });
  for (let id = 1; id <= Number(commits); id++) await tell(store, superstep(thread, claim, id));
}

await Promise.all(
  Array.from({ length: Number(writers) }, (_, index) =>
    writer(`${name}${index}`).catch((error: Error) => failures.push(error.message)),
  ),
);
process.stdout.write(JSON.stringify(failures));
store.close();
