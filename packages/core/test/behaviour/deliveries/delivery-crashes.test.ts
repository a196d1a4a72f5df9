/** A process that dies at any write of any delivery, and the same delivery again: the same answers, and no effect twice. */
import { expect, test } from "vitest";
import { setup } from "xstate";
import * as z from "zod";
import { type Delivery, type DeliveryResult, deliver } from "../../../src/adapter.ts";
import {
  channel,
  defineGraph,
  defineState,
  durableMachine,
  END,
  type Graph,
  type MemoryStore,
  memoryStore,
  START,
} from "../../../src/index.ts";
import { createDyingStore } from "../../support/dying-store.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const State = defineState({ messages: channel.messages(), log: channel.list(z.string()) });

/** Graph with an effect of each class, a question that expires, and a conversation; `effects` gets each key. */
function createDesk(effects: string[]) {
  const record =
    (text: string) =>
    ({ idempotencyKey }: { readonly idempotencyKey: string }): string => {
      effects.push(idempotencyKey);
      return text;
    };
  return defineGraph({
    name: "desk",
    state: State,
    interrupts: { confirm: z.string(), remind: { answer: z.string(), expiresMs: 1_000, onExpire: "late" } },
  })
    .nodes({
      prepare: async (_state, { step }) => ({ log: [await step("prepare", record("prepared"))] }),
      ask: async (_state, { interrupt }) => ({ log: [await interrupt("confirm")] }),
      pay: async (_state, { step }) => ({
        log: [await step("pay", record("paid"), { effect: "once", reconcile: () => undefined })],
      }),
      remind: async (_state, { interrupt }) => ({ log: [await interrupt("remind")] }),
    })
    .edges({ [START]: "prepare", prepare: "ask", ask: "pay", pay: "remind", remind: END });
}

const light = durableMachine(
  setup({ types: { events: {} as { type: "GO" } | { type: "STOP" } } }).createMachine({
    id: "light",
    initial: "red",
    states: {
      red: { on: { GO: "green" } },
      green: { after: { 500: "amber" } },
      amber: { on: { STOP: "off" } },
      off: { type: "final" },
    },
  }),
  { version: 1 },
);

/** Deliveries of a scenario; `waitMs` is the time before each. */
interface Scenario {
  readonly name: string;
  readonly deliveries: readonly (Delivery & { readonly waitMs?: number })[];
}

const scenarios: readonly Scenario[] = [
  {
    name: "a graph with messages, answers, a timer and a second run",
    deliveries: [
      { thread: "t", key: "run", run: { graph: "desk", input: { log: ["a"] } } },
      { thread: "t", key: "next", run: { graph: "desk", input: { log: ["b"] } } },
      { thread: "t", key: "message", message: { kind: "steer", messages: "hurry" } },
      { thread: "t", key: "answer", answers: { confirm: "yes" }, by: "ann" },
      { thread: "t", timers: true, waitMs: 1_000 },
      { thread: "t", key: "go", resume: true },
    ],
  },
  {
    name: "a graph whose first run is cancelled",
    deliveries: [
      { thread: "t", key: "run", run: { graph: "desk", input: { log: ["a"] } } },
      { thread: "t", key: "next", run: { graph: "desk", input: { log: ["b"] } } },
      { thread: "t", key: "cancel", cancel: "the customer left", by: "ann" },
      { thread: "t", resume: true },
      { thread: "t", key: "answer", answers: { confirm: "yes" } },
    ],
  },
  {
    name: "a durable machine with events and a delay",
    deliveries: [
      { thread: "t", key: "run", run: { graph: "light" } },
      { thread: "t", key: "go", answers: { GO: true } },
      { thread: "t", timers: true, waitMs: 500 },
      { thread: "t", key: "stop", answers: { STOP: true } },
    ],
  },
];

interface Outcome {
  readonly results: readonly DeliveryResult[];
  readonly effects: readonly string[];
  readonly writes: number;
  readonly state: string;
}

/** Delivers a scenario; each process dies at its `nth` write, and the delivery is repeated by the next one. */
async function play(
  { deliveries }: Scenario,
  death: { readonly nth: number; readonly when: "before" | "after"; readonly repeats?: boolean },
): Promise<Outcome> {
  const world = createVirtualWorld();
  const effects: string[] = [];
  const graphs: readonly Graph[] = [createDesk(effects) as never, light as never];
  let owner: MemoryStore = memoryStore();
  let writes = 0;
  let deaths = 0;
  const results: DeliveryResult[] = [];
  for (const { waitMs = 0, ...delivery } of deliveries) {
    await world.advance(waitMs);
    for (;;) {
      const dying = createDyingStore(owner, deaths > 0 ? 0 : death.nth - writes, death.when);
      const result = await Promise.race([deliver({ store: dying.store, graphs, world }, delivery), dying.dead]);
      writes += dying.count();
      if (result === "dead") {
        deaths += 1;
        owner = owner.peer();
        continue;
      }
      results.push(result);
      if (death.repeats === true) expect(await deliver({ store: owner, graphs, world }, delivery)).toEqual(result);
      break;
    }
  }
  const head = await owner.head("t");
  const state = JSON.stringify(await owner.state("t", head?.id ?? 0));
  return { results, effects, writes, state };
}

/** Results without the ids of runs and interrupts. */
function describeResults(results: readonly DeliveryResult[]): readonly unknown[] {
  return results.map(({ run: _, interrupts, next, ...result }) => ({
    ...result,
    next: next !== undefined,
    interrupts: interrupts.map(({ key, payload }) => [key, payload]),
  }));
}

for (const scenario of scenarios) {
  test(`${scenario.name}: each delivery repeated at once has the same answer [PK1, PK3]`, async () => {
    await play(scenario, { nth: 0, when: "before", repeats: true });
  });

  test(`${scenario.name}: a death at any write of a delivery, before and after it, changes no answer [PK1, PK3]`, async () => {
    const reference = await play(scenario, { nth: 0, when: "before" });
    expect(reference.writes).toBeGreaterThan(10);
    for (let nth = 1; nth <= reference.writes; nth++)
      for (const when of ["before", "after"] as const) {
        const killed = await play(scenario, { nth, when });
        const place = `${when} write ${nth}`;
        expect(describeResults(killed.results), place).toEqual(describeResults(reference.results));
        expect(new Set(killed.effects).size, place).toBe(new Set(reference.effects).size);
        expect(killed.effects.length - reference.effects.length, place).toBeLessThanOrEqual(1);
      }
  });
}
