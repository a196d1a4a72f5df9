import { describe, expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import {
  defineGraph,
  defineState,
  durableMachine,
  END,
  type MemoryStore,
  memoryStore,
  type RunHandle,
  run,
  START,
} from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";
import { expectNothingUnhandled } from "../../support/unhandled-errors.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const chargeMs = 5_000;

/** Starts a charge that ends after `chargeMs`. */
type StartCharge = (at: {
  readonly world: VirtualWorld;
  readonly store: MemoryStore;
  readonly thread: string;
}) => RunHandle<unknown>;

const programs: readonly (readonly [string, StartCharge])[] = [
  [
    "a graph",
    (at) => {
      const graph = defineGraph({ name: "shop", state: defineState({}) })
        .nodes({ charge: async (_state, { step }) => void (await step("charge", () => waitForCharge(at.world))) })
        .edges({ [START]: "charge", charge: END });
      return run(graph, at);
    },
  ],
  [
    "a durable machine",
    (at) => {
      const machine = setup({ actors: { charge: fromPromise(() => waitForCharge(at.world)) } }).createMachine({
        id: "payment",
        initial: "charging",
        states: { charging: { invoke: { src: "charge", onDone: "paid" } }, paid: { type: "final" } },
      });
      return run(durableMachine(machine, { version: 1, effects: { charge: "once" } }), at);
    },
  ],
];

function waitForCharge({ schedule }: VirtualWorld): Promise<void> {
  return new Promise((resolve) => {
    schedule.after(chargeMs, resolve);
  });
}

describe("a memory store that a test crashes", () => {
  expectNothingUnhandled();

  for (const [program, startCharge] of programs) {
    test(`the ignored run of ${program} on a crashed store ends without an unhandled rejection [E65]`, async () => {
      const world = createVirtualWorld();
      const store = memoryStore();
      // With a peer, a machine also polls its inbox while it waits.
      store.peer();
      startCharge({ world, store, thread: "ignored" });
      const read = startCharge({ world, store, thread: "awaited" });
      await world.waitUntilIdle();
      store.crash();
      const failure = getFailure(read.result, "store_closed");
      await world.advance(2 * chargeMs);
      expect((await failure).message).toContain("the owner of the memory store has crashed");
    });
  }
});
