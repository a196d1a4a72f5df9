import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import { channel, defineGraph, defineState, END, isStatewrightError, START, sqliteStore } from "statewright";
import { type Delivery, deliver } from "statewright/adapter";
import * as z from "zod";

const Order = defineState({ order: z.string(), log: channel.list(z.string()) });
const orders = defineGraph({
  name: "orders",
  version: 1,
  state: Order,
  interrupts: { approve: { answer: z.boolean(), expiresMs: 86_400_000, onExpire: false } },
})
  .nodes({
    pack: ({ order }) => ({ log: [`${order} packed`] }),
    approve: async (_state, { interrupt }) => ({ log: [(await interrupt("approve")) ? "approved" : "refused"] }),
    ship: () => ({ log: ["shipped"] }),
  })
  .edges({ [START]: "pack", pack: "approve", approve: "ship", ship: END });

/** A queue of files: a job exists until it is acknowledged. */
const jobs = "jobs";
mkdirSync(jobs, { recursive: true });

interface Job {
  readonly delivery: Delivery;
  /** Earliest time of the job. */
  readonly notBefore?: number;
}

function send(id: string, job: Job): void {
  writeFileSync(join(jobs, `${id}.json`), JSON.stringify(job));
}

function listDue(): readonly { readonly id: string; readonly job: Job }[] {
  return readdirSync(jobs)
    .sort()
    .map((name) => ({ id: name, job: JSON.parse(readFileSync(join(jobs, name), "utf8")) as Job }))
    .filter(({ job: { notBefore = 0 } }) => notBefore <= Date.now());
}

const store = sqliteStore("orders.db", { ownership: "orchestrator" });
const serving = { store, graphs: [orders] };
const stopping = new AbortController();
process.once("SIGTERM", () => stopping.abort());

/** Delivers the due jobs until none is left. */
async function work(): Promise<void> {
  for (let due = listDue(); due.length > 0 && !stopping.signal.aborted; due = listDue()) {
    for (const { id, job } of due) await deliverJob(id, job);
    await setTimeout(50);
  }
  await store.close();
}

/** Delivers a job once, and removes it when nothing of it is left to do. */
async function deliverJob(id: string, { delivery }: Job): Promise<void> {
  try {
    const limits = { ms: 300_000 };
    const given = { ...delivery, claim: "force", at: Date.now(), signal: stopping.signal, limits } as const;
    const { status, output, refused, next, hasMore } = await deliver(serving, given);
    console.log(id, status, refused?.code ?? JSON.stringify(output ?? null));
    if (hasMore) return;
    if (next !== undefined) wake(delivery.thread, next.at);
    rmSync(join(jobs, id));
  } catch (error) {
    // The store failed, or another process took the thread: the job stays in the queue.
    if (!isStatewrightError(error)) throw error;
    console.error(id, error.code);
  }
}

/** Sends a job for the next due time of a thread; a later one replaces it. */
function wake(thread: string, at: number): void {
  send(`${thread}.timers`, { delivery: { thread, timers: true }, notBefore: at });
}

const [role = "work", thread = "order-1"] = process.argv.slice(2);
if (role === "send")
  send(`${thread}.run`, { delivery: { thread, key: "run", run: { graph: "orders", input: { order: thread } } } });
else if (role === "approve")
  send(`${thread}.answer`, { delivery: { thread, key: "answer", answers: { approve: true }, by: "Kim" } });
else await work();
