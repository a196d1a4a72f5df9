/**
 * One process of a durable order machine over a SQLite file: charges once, ships under a key. The crash test starts,
 * kills and restarts it; each process continues from the file and reconciles a charge in doubt with the bank.
 */
import { appendFileSync, readFileSync } from "node:fs";
import process from "node:process";
import { crashPoint, crashPoints, logEffect, restartExitCode } from "@statewright/testing";
import { durableMachine, getHistory, resume, run, sqliteStore } from "statewright";
import { systemWorld } from "statewright/adapter";
import { assign, fromPromise, setup } from "xstate";

const thread = "order-9";

const pack = setup({
  actors: {
    wrap: fromPromise<string, { what: string }>(async ({ input, self }) => {
      logEffect({ what: "wrap", key: self.sessionId });
      crashPoint("inside wrap");
      return `${input.what}, wrapped`;
    }),
  },
  types: { context: {} as { what: string }, input: {} as { what: string }, output: {} as string },
}).createMachine({
  id: "pack",
  context: ({ input }) => ({ what: input.what }),
  initial: "wrapping",
  states: {
    wrapping: {
      invoke: {
        src: "wrap",
        input: ({ context }) => context,
        onDone: { target: "drying", actions: assign({ what: ({ event }) => event.output }) },
      },
    },
    drying: { after: { 60000: "packed" } },
    packed: { type: "final" },
  },
  output: ({ context }) => context.what,
});

const machine = setup({
  types: {
    input: {} as { readonly id: string },
    context: {} as {
      readonly id: string;
      readonly receipt: string;
      readonly parcel: string;
      readonly tracking: string;
    },
  },
  actors: {
    charge: fromPromise<string, { id: string }>(async ({ input, self }) => {
      logEffect({ what: "charge", key: self.sessionId });
      crashPoint("inside charge");
      return `paid ${input.id}`;
    }),
    pack,
    ship: fromPromise<string, { parcel: string }>(async ({ input, self }) => {
      logEffect({ what: "ship", key: self.sessionId });
      crashPoint("inside ship");
      return `sent ${input.parcel}`;
    }),
  },
}).createMachine({
  id: "order",
  context: ({ input }) => ({ id: input.id, receipt: "", parcel: "", tracking: "" }),
  initial: "charging",
  states: {
    charging: {
      invoke: {
        src: "charge",
        input: ({ context }) => ({ id: context.id }),
        onDone: { target: "packing", actions: assign({ receipt: ({ event }) => event.output }) },
      },
    },
    packing: {
      invoke: {
        id: "pack",
        src: "pack",
        input: ({ context }) => ({ what: `order ${context.id}` }),
        onDone: { target: "shipping", actions: assign({ parcel: ({ event }) => event.output }) },
      },
    },
    shipping: {
      invoke: {
        src: "ship",
        input: ({ context }) => ({ parcel: context.parcel }),
        onDone: { target: "shipped", actions: assign({ tracking: ({ event }) => event.output }) },
      },
    },
    shipped: { type: "final" },
  },
});

const order = durableMachine(machine, {
  version: 1,
  effects: { charge: "once", pack: { wrap: "idempotent" }, ship: "idempotent" },
});

function isPaidAtBank(key: string): boolean {
  const effects = readFileSync("effects.ndjson", { encoding: "utf8", flag: "a+" });
  return effects.split("\n").some((line) => line.includes('"charge"') && line.includes(JSON.stringify(key)));
}

/** World of this process: the clock is two minutes later in each process, so that a delay ends one process only. */
function createWorld() {
  appendFileSync("processes.txt", "x");
  const earlierProcesses = readFileSync("processes.txt").length - 1;
  const world = systemWorld();
  return { ...world, clock: { ...world.clock, now: () => world.clock.now() + earlierProcesses * 120_000 } };
}

const world = createWorld();
const store = crashPoints(sqliteStore("orders.db", { durability: "normal" }));
const hasStarted = (await store.head(thread)) !== undefined;
let result = hasStarted
  ? await resume(order, { store, thread, world }).result
  : await run(order, { store, thread, world, input: { id: "9" } }).result;
if (result.status === "waiting" && result.interrupts[0]?.key === "in_doubt") {
  const { idempotencyKey } = result.interrupts[0].payload as { readonly idempotencyKey: string };
  const answers = {
    in_doubt: isPaidAtBank(idempotencyKey) ? { happened: true, output: "paid 9" } : { happened: false },
  };
  result = await resume(order, { store, thread, world, answers }).result;
}
if (result.status === "done") {
  const states: string[] = [];
  for await (const { nodes, next } of getHistory(order, { store, thread }))
    states.push(`${nodes.join()} → ${next.join()}`);
  console.log(JSON.stringify({ state: result.state, states }));
} else process.exitCode = restartExitCode;
await store.close();
