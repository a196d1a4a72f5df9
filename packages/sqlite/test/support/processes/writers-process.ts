/**
 * Process with several concurrent writers, each on its own thread; prints the number of reported commits and the
 * failures.
 */
import process from "node:process";
import { createSuperstep, graph, saveCommit } from "../rows.ts";
import { sqliteStore } from "../sqlite-store.ts";

const [file = "", name = "", writers = "", commits = ""] = process.argv.slice(2);
const store = sqliteStore(file);
const failures: string[] = [];

async function writer(thread: string): Promise<void> {
  const claim = await store.claim({ ...graph, thread });
  for (let id = 1; id <= Number(commits); id++) await saveCommit(store, createSuperstep(thread, claim, id));
}

await Promise.all(
  Array.from({ length: Number(writers) }, (_, index) =>
    writer(`${name}${index}`).catch((error: Error) => failures.push(error.message)),
  ),
);
process.stdout.write(JSON.stringify(failures));
await store.close();
