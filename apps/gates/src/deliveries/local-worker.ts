/**
 * Worker in this process. Its death and its stop are those of its store: after a death no call of the store ends, and
 * its lock stays, as that of a process that hangs; during a stop the calls wait.
 */
import { join } from "node:path";
import type { Store } from "@statewright/core";
import { type Delivery, type DeliveryResult, deliver, systemWorld } from "@statewright/core/adapter";
import { type SqliteStore, sqliteStore } from "@statewright/sqlite";
import { createDelivererGraphs, type WorkerOptions } from "@statewright/testing/conformance";
import { storeFile, toOffsetClock, type Worker, WorkerLostError } from "./worker.ts";

const never = new Promise<never>(() => undefined);

export function createLocalWorker(folder: string, { version = 1, clockOffsetMs = 0 }: WorkerOptions): Worker {
  const world = toOffsetClock(systemWorld(), clockOffsetMs);
  const inner = sqliteStore(join(folder, storeFile), { durability: "normal", ownership: "orchestrator" });
  let isDead = false;
  let stopped: Promise<void> | undefined;
  let lose: (error: WorkerLostError) => void = () => undefined;
  let lost = createLoss();

  function createLoss(): Promise<never> {
    const loss = new Promise<never>((_, reject) => {
      lose = reject;
    });
    // A worker may be lost while no delivery waits for it.
    loss.catch(() => undefined);
    return loss;
  }

  async function call<Value>(work: () => Promise<Value>): Promise<Value> {
    await stopped;
    if (isDead) return await never;
    const value = await work();
    await stopped;
    return isDead ? await never : value;
  }

  const serving = { store: createMortalStore(inner, call), graphs: createDelivererGraphs(folder, version), world };
  return {
    deliver: (delivery: Delivery): Promise<DeliveryResult> => Promise.race([deliver(serving, delivery), lost]),
    kill: async () => {
      isDead = true;
      lose(new WorkerLostError());
    },
    stop: async () => {
      let resume = (): void => undefined;
      stopped = new Promise<void>((resolve) => {
        resume = resolve;
      });
      lose(new WorkerLostError());
      lost = createLoss();
      return async () => {
        stopped = undefined;
        resume();
      };
    },
    end: () => inner.close(),
  };
}

type Call = <Value>(work: () => Promise<Value>) => Promise<Value>;

/** Passes the writes and the reads of a delivery through `call`. */
function createMortalStore(inner: SqliteStore, call: Call): Store {
  return {
    ...inner,
    claim: (request) => call(() => inner.claim(request)),
    enqueue: (write) => call(() => inner.enqueue(write)),
    enqueueDue: (page) => call(() => inner.enqueueDue(page)),
    post: (write) => call(() => inner.post(write)),
    runs: (filter) => call(() => inner.runs(filter)),
    thread: (thread) => call(() => inner.thread(thread)),
    commit: (commit, onCommitted) => {
      const written = call(
        () =>
          new Promise<Parameters<typeof onCommitted>>((resolve) => {
            inner.commit(commit, (...outcome) => resolve(outcome));
          }),
      );
      void written.then((outcome) => onCommitted(...outcome));
    },
  };
}
