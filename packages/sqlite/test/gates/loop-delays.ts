/** Measures event loop delays while two processes write one file with four writers each; no writer may get an error. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { sqliteStore } from "@statewright/sqlite";
import { createSuperstep, graph, saveCommit } from "../support/rows.ts";
import type { Found } from "./seeded.ts";

const writers = 4;

export async function measureLoopDelays(home: string, { count: seconds }: { readonly count: number }): Promise<Found> {
  const file = join(home, "shared.db");
  const store = sqliteStore(file);
  const failures: { seed: number; what: string }[] = [];
  const rival = spawn(
    process.execPath,
    [
      fileURLToPath(new URL("../support/processes/writers-process.ts", import.meta.url)),
      file,
      "rival",
      String(writers),
      "1000000",
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  const until = process.hrtime.bigint() + BigInt(seconds) * 1_000_000_000n;
  let commits = 0;
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  const writer = async (thread: string): Promise<void> => {
    const claim = await store.claim({ ...graph, thread });
    for (let id = 1; process.hrtime.bigint() < until; id++) {
      await saveCommit(store, createSuperstep(thread, claim, id));
      commits += 1;
    }
  };
  await Promise.all(
    Array.from({ length: writers }, (_, index) =>
      writer(`mine${index}`).catch((error: Error) => failures.push({ seed: index, what: error.message })),
    ),
  );
  delays.disable();
  rival.kill("SIGKILL");
  await store.close();
  const delayMs = delays.percentile(99) / 1e6;
  if (delayMs >= 50) failures.push({ seed: 0, what: `99 % of the loop delays are up to ${delayMs.toFixed(1)} ms` });
  return {
    cases: seconds,
    counts: {
      "commits of this process": commits,
      "ms, 99 % of the loop delays": Math.round(delayMs * 10) / 10,
      "ms, the longest": Math.round(delays.max / 1e5) / 10,
    },
    failures,
  };
}
