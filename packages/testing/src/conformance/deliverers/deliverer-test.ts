/** Definition of conformance tests for deliverers: adapters of orchestrators that deliver work at least once. */
import type { Store } from "@statewright/core";
import type { Delivery, DeliveryResult } from "@statewright/core/adapter";

/** Version and clock of the workers. */
export interface WorkerOptions {
  /** Version of the graphs of `createDelivererGraphs`. Default 1. */
  readonly version?: 1 | 2;
  /** Milliseconds by which the clock of the worker is ahead. Default 0. */
  readonly clockOffsetMs?: number;
}

/** Deliverer over an empty store, with workers that serve the graphs of `createDelivererGraphs(folder, version)`. */
export interface DelivererUnderTest {
  /** Folder of the effects and holds of the graphs. */
  readonly folder: string;
  /** Another owner of the store, for reads. */
  readonly store: Store;
  /**
   * Hands a delivery to the orchestrator. Resolves with the result of the acknowledged delivery, which has no more work;
   * rejects when the orchestrator gives up.
   */
  deliver(delivery: Delivery): Promise<DeliveryResult>;
  /** Replaces all workers by new ones. Part `workers`. */
  workers?(options: WorkerOptions): Promise<void>;
  /** Ends the worker at work like a SIGKILL; another one takes its deliveries. Part `kill`. */
  kill?(): Promise<void>;
  /**
   * Stops the worker at work like a SIGSTOP until the returned function continues it; another one takes its deliveries.
   * Part `stop`.
   */
  stop?(): Promise<() => Promise<void>>;
  /** Moves the clock of the orchestrator forward. Part `advance`. */
  advance?(ms: number): Promise<void>;
  /** Kills and starts the server of the orchestrator. Part `server`. */
  server?(): Promise<void>;
  /** Ends the workers and removes their files. */
  dispose(): Promise<void>;
}

/** Part of a deliverer that a test needs. */
export type DelivererPart = "workers" | "kill" | "stop" | "advance" | "server";

/** A test of the suite. */
export interface DelivererTest {
  /** Id of the scenario: PA1 to PA22. */
  readonly id: string;
  /** Sentence about the behaviour, with its rule ids at the end. */
  readonly name: string;
  readonly needs: readonly DelivererPart[];
  /** Runs the test with a fresh deliverer from `open`. Rejects when the test fails. */
  run(open: () => Promise<DelivererUnderTest>): Promise<void>;
}

/** Defines a test; its id is the last rule id of its name. */
export function defineDelivererTest<Part extends DelivererPart = never>(
  name: string,
  needs: readonly Part[],
  body: (deliverer: DelivererUnderTest & Required<Pick<DelivererUnderTest, Part>>) => Promise<void>,
): DelivererTest {
  const [, id] = /(P[AK]\d+)\]$/.exec(name) ?? [];
  if (id === undefined) throw new Error(`deliverer test: expected a name that ends with a rule id, got "${name}"`);
  return {
    id,
    name,
    needs,
    run: async (open) => {
      const deliverer = await open();
      try {
        for (const part of needs)
          if (deliverer[part] === undefined) throw new Error(`the deliverer has no ${part}, which its parts name`);
        await body(deliverer as typeof deliverer & Required<Pick<DelivererUnderTest, Part>>);
      } finally {
        await deliverer.dispose();
      }
    },
  };
}
