/** Refused events name the accepted events; a finished run accepts no event. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type AnyEventObject, createMachine } from "xstate";
import * as z from "zod";
import {
  defineGraph,
  defineState,
  durableMachine,
  END,
  type Graph,
  getState,
  isStatewrightError,
  memoryStore,
  resume,
  run,
  START,
} from "../../../src/index.ts";
import { createKernel, type Snapshot } from "../../../src/run/kernel/kernel.ts";
import { createDescribedGraph, generateSoundDescriptions } from "../../inspect/random-graphs.ts";
import { collectEvents, getFailure } from "../../support/failure.ts";

test("an event is accepted or refused with the accepted list in every state of any graph [E54]", () => {
  const counts = { taken: 0, refused: 0, finished: 0 };
  fc.assert(
    fc.property(generateSoundDescriptions(2), fc.infiniteStream(fc.nat()), (description, chance) => {
      const graph = createDescribedGraph(description, () => 0);
      const kernel = createKernel(graph.machine);
      const events = eventsFor([...graph.nodes.keys()]);
      let [at] = kernel.enter();
      for (let step = 0; step < 12; step++) {
        const accepts = kernel.accepts(at);
        const next: Snapshot[] = [];
        for (const event of events) {
          try {
            next.push(kernel.step(at, event)[0]);
            expect(accepts).toContain(event.type);
            counts.taken += 1;
          } catch (error) {
            if (!isStatewrightError(error, "event_refused")) throw error;
            expect(error.details).toEqual({ value: at.value, event: event.type, accepts });
            for (const type of accepts) expect(error.message).toContain(`"${type}"`);
            counts.refused += 1;
          }
        }
        if (at.status === "done") {
          expect([accepts, next]).toEqual([[], []]);
          counts.finished += 1;
          return;
        }
        at = next[(chance.next().value ?? 0) % next.length] as Snapshot;
      }
    }),
    { numRuns: 30, seed: 54 },
  );
  for (const count of Object.values(counts)) expect(count).toBeGreaterThan(3);
});

function eventsFor(nodes: readonly string[]): readonly AnyEventObject[] {
  return [
    { type: "step.commit", to: [] },
    ...nodes.flatMap((node) => [
      { type: "step.commit", to: [node] },
      { type: `xstate.done.actor.${node}` },
      { type: "task.interrupted", node },
      { type: "task.failed", node },
    ]),
    { type: "run.resumed" },
    { type: "something.else" },
  ];
}

test("a finished run accepts no answer, changes nothing and emits only its end [E54]", async () => {
  const store = memoryStore();
  const graph = defineGraph({
    name: "asks",
    state: defineState({ n: z.number().default(0) }),
    interrupts: { ok: z.boolean() },
  })
    .nodes({ ask: async (_state, { interrupt }) => ({ n: (await interrupt("ok")) ? 1 : 2 }) })
    .edges({ [START]: "ask", ask: END });
  await run(graph, { store, thread: "t" }).result;
  await resume(graph, { store, thread: "t", answers: { ok: true } }).result;
  const before = await getState(graph, { store, thread: "t" });
  for (const [answers, code] of [
    [{ ok: false }, "already_answered"],
    [{ other: 1 }, "unknown_interrupt"],
  ] as const) {
    const handle = resume(graph as Graph, { store, thread: "t", answers });
    const events = collectEvents(handle);
    const error = await getFailure(handle.result, code);
    if (code === "unknown_interrupt") {
      expect(error.message).toContain("the run has finished and accepts no answers");
      expect(error.details).toEqual([]);
    }
    expect(events).toEqual([]);
  }
  expect(await getState(graph, { store, thread: "t" })).toEqual(before);
  const again = resume(graph, { store, thread: "t" });
  const events = collectEvents(again);
  expect((await again.result).status).toBe("done");
  expect(events.map(({ type }) => type)).toEqual(["run.completed"]);
});

test("a finished durable machine accepts no event, and the accepted list is empty [E54]", async () => {
  const store = memoryStore();
  const machine = createMachine({
    id: "door",
    initial: "open",
    states: { open: { on: { CLOSE: "closed" } }, closed: { type: "final" } },
  });
  const door = durableMachine(machine, { version: 1 });
  await run(door, { store, thread: "t", input: {} }).result;
  const refused = await getFailure(resume(door, { store, thread: "t", answers: { OPEN: {} } }).result, "event_refused");
  expect(refused.details).toMatchObject({ event: "OPEN", accepts: ["CLOSE"] });
  await resume(door, { store, thread: "t", answers: { CLOSE: {} } }).result;
  for (const type of ["CLOSE", "OPEN"]) {
    const error = await getFailure(
      resume(door, { store, thread: "t", answers: { [type]: {} } }).result,
      "event_refused",
    );
    expect(error.details).toEqual({ event: type, accepts: [] });
    expect(error.message).toContain("a finished run accepts no events");
  }
});
