/**
 * Process with one engine on a shared file. Arguments: a folder. Prints `ready`, appends each started thread to a file,
 * and prints its counts after the line `stop` on stdin.
 */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { engine, type Store } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { sqliteStore } from "@statewright/sqlite";
import { createQueuedGraph } from "./queued-graph.ts";

/** Counts of a process. */
export interface EngineCounts {
  /** Claims of single threads, and those that another process held. */
  readonly claims: number;
  readonly refused: number;
  /** Requests for runs, and the runs they returned. */
  readonly requests: number;
  readonly claimedRuns: number;
  /** Runs of short queues that waited behind a second run of the long queue. */
  readonly unfair: number;
  /** Waits for the lock of the file. */
  readonly busyWaits: number;
  readonly cpuUs: number;
}

/** Output line of this process. */
export type EngineMessage = { readonly kind: "ready" } | { readonly kind: "stopped"; readonly counts: EngineCounts };

/** Runs that a process executes at the same time. */
export const concurrency = 8;

type MutableCounts = { -readonly [Name in keyof EngineCounts]: EngineCounts[Name] };

function countClaims(store: Store, counts: MutableCounts): Store {
  return {
    ...store,
    claim: async (request) => {
      counts.claims += 1;
      try {
        return await store.claim(request);
      } catch (error) {
        counts.refused += 1;
        throw error;
      }
    },
    claimRuns: async (request) => {
      counts.requests += 1;
      const claimed = (await store.claimRuns?.(request)) ?? [];
      counts.claimedRuns += claimed.length;
      if (claimed.filter(({ run }) => run.tenant === "big").length > 1) counts.unfair += await countUnserved(store);
      return claimed;
    },
  };
}

/** Counts the runs of short queues that no process has claimed: none may be left when a long queue has a second turn. */
async function countUnserved(store: Store): Promise<number> {
  const queued = await store.claimable({ kind: "queued", limit: 10_000 });
  return queued.filter(({ tenant }) => tenant !== "big").length;
}

function sendMessage(message: EngineMessage): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

async function serve(folder: string): Promise<void> {
  const counts = { claims: 0, refused: 0, requests: 0, claimedRuns: 0, unfair: 0, busyWaits: 0, cpuUs: 0 };
  const real = systemWorld();
  const log: typeof real.log = (_, message) => {
    if (message === "the store waits for a locked file") counts.busyWaits += 1;
  };
  const store = sqliteStore(join(folder, "shared.db"), { durability: "normal", world: { ...real, log } });
  const graph = createQueuedGraph((thread) => appendFileSync(join(folder, "started.txt"), `${thread}\n`));
  const host = engine({ store: countClaims(store, counts), graphs: [graph], concurrency, pollMs: 200 });
  const before = process.cpuUsage();
  sendMessage({ kind: "ready" });
  await host.start();
  for await (const line of createInterface({ input: process.stdin })) if (line === "stop") break;
  await host.stop();
  await store.close();
  const { user, system } = process.cpuUsage(before);
  sendMessage({ kind: "stopped", counts: { ...counts, cpuUs: user + system } });
}

const [folder] = process.argv.slice(2);
if (folder !== undefined && import.meta.main) await serve(folder);
