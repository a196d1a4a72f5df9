/** Worker of a simulated orchestrator: one process, or a stand-in for one in this process. */
import type { Delivery, DeliveryResult } from "@statewright/core/adapter";
import type { WorkerOptions } from "@statewright/testing/conformance";

/** The worker died or was replaced: the delivery may have been done in part. */
export class WorkerLostError extends Error {
  constructor() {
    super("the worker has ended");
    this.name = "WorkerLostError";
  }
}

/** The delivery of a worker in another process was rejected. */
export class StoreFailedError extends Error {}

export interface Worker {
  /** Delivers to this worker. Rejects with the error of the store, or with {@link WorkerLostError}. */
  deliver(delivery: Delivery): Promise<DeliveryResult>;
  /** Ends the worker as by SIGKILL. */
  kill(): Promise<void>;
  /** Stops the worker as by SIGSTOP; the returned function continues it. Its open deliveries are lost. */
  stop(): Promise<() => Promise<void>>;
  /** Ends a worker without open deliveries. */
  end(): Promise<void>;
}

/** Creates a worker over the file and the effects of a folder. */
export type CreateWorker = (folder: string, options: WorkerOptions) => Worker;

/** World whose clock is ahead of the given one. */
export function toOffsetClock<World extends { readonly clock: { now(): number; monotonic(): number } }>(
  world: World,
  offsetMs: number,
): World {
  const { clock } = world;
  return { ...world, clock: { now: () => clock.now() + offsetMs, monotonic: () => clock.monotonic() } };
}

/** Name of the file of the store in the folder of a deliverer. */
export const storeFile = "threads.db";
