/** States and events without private channels. */
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  getState,
  memoryStore,
  type RunEvent,
  run,
  START,
  streamEvents,
  subgraph,
} from "../../src/index.ts";
import { toPublicEvent, toPublicState } from "../../src/inspect.ts";

const sentinel = "PRIVATE-SENTINEL";
const State = defineState({ answer: z.string().default(""), scratch: channel.list(z.string()) });

const inner = defineGraph({ name: "inner", state: State, private: ["scratch"] })
  .nodes({ think: () => ({ scratch: [sentinel], answer: "inner" }) })
  .edges({ [START]: "think", think: END });

const graph = defineGraph({ name: "outer", state: State, private: ["scratch"] })
  .nodes({
    note: () => ({ scratch: [sentinel] }),
    deep_think: subgraph(inner, { input: () => ({}), output: ({ answer }) => ({ answer }) }),
  })
  .edges({ [START]: "note", note: "deep_think", deep_think: END });

test("a state without private channels has the type and the value of the state in a result [SE11]", async () => {
  const store = memoryStore();
  const ended = await run(graph, { store, thread: "t", input: {} }).result;
  const { state } = await getState(graph, { store, thread: "t" });
  expect(JSON.stringify(state)).toContain(sentinel);
  const shown = toPublicState(graph, state);
  expectTypeOf(shown).toEqualTypeOf<typeof ended.state>();
  expect(shown).toEqual(ended.state);
  expect(shown).toEqual({ answer: "inner" });
});

test("the public events of a run hold no change of a private channel, also of a subgraph, and all other data [SE11]", async () => {
  const store = memoryStore();
  const handle = run(graph, { store, thread: "t", input: {} });
  const events: RunEvent[] = [];
  for await (const event of handle.events()) events.push(event);
  for await (const event of streamEvents({ store, thread: "t" })) events.push(event);
  const within = events.filter(({ within: path }) => path === "deep_think");
  for (const source of [events, within]) {
    expect(JSON.stringify(source)).toContain(sentinel);
    const shown = source.map((event) => toPublicEvent(graph, event));
    expect(JSON.stringify(shown)).not.toContain(sentinel);
    expect(shown.map(({ type, seq }) => [type, seq])).toEqual(source.map(({ type, seq }) => [type, seq]));
    expect(shown.some((event) => event.type === "step.committed" && "answer" in event.changes)).toBe(true);
  }
});

test("changes of an inner graph that the graph no longer has are removed from its public events [SE11]", async () => {
  const renamed = defineGraph({ name: "outer", state: State, private: ["scratch"] })
    .nodes({ note: () => ({}) })
    .edges({ [START]: "note", note: END });
  const store = memoryStore();
  await run(graph, { store, thread: "t", input: {} }).result;
  for await (const event of streamEvents({ store, thread: "t" }))
    if (event.within !== undefined) expect(toPublicEvent(renamed, event)).toMatchObject({ changes: {} });
});
