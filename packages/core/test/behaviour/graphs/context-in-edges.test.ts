/** Routes and fan-outs read the context of the run. */
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineContext,
  defineGraph,
  defineState,
  END,
  fanOut,
  getState,
  inputNode,
  memoryStore,
  resume,
  route,
  run,
  START,
  subgraph,
  updateState,
} from "../../../src/index.ts";

const Desk = defineContext({ plan: z.enum(["free", "paid"]), teams: z.array(z.string()).default(["a", "b"]) });
const state = defineState({ log: channel.list(z.string()), stop: z.boolean().default(false) });

function createGraph() {
  return defineGraph({ name: "desk", state, context: Desk })
    .nodes({
      sort: () => ({ log: ["sorted"] }),
      premium: () => ({ log: ["premium"] }),
      team: inputNode(z.object({ name: z.string() }), (_state, { input }) => ({ log: [`team ${input.name}`] })),
    })
    .edges({
      [START]: route(["sort", "premium"], (_state, { plan }) => {
        expectTypeOf(plan).toEqualTypeOf<"free" | "paid">();
        return plan === "paid" ? "premium" : "sort";
      }),
      sort: fanOut("team", ({ log }, { teams }) => teams.map((name) => ({ name: `${name}${log.length}` }))),
      premium: "sort",
      team: END,
    });
}

describe("context in edges", () => {
  test("routes and fan-outs get the context of the run, typed as in node bodies [FX41]", async () => {
    const graph = createGraph();
    const free = await run(graph, { context: { plan: "free" }, input: {} }).result;
    expect(free.state.log).toEqual(["sorted", "team a1", "team b1"]);
    const paid = await run(graph, { context: { plan: "paid", teams: ["x"] }, input: {} }).result;
    expect(paid.state.log).toEqual(["premium", "sorted", "team x2"]);
  });

  test("an inner graph gets its own context in its edges, and a resume the context of the resume [FX41]", async () => {
    const inner = createGraph();
    const store = memoryStore();
    const graph = defineGraph({
      name: "outer",
      state: defineState({ log: channel.list(z.string()) }),
      context: defineContext({ team: z.string() }),
    })
      .nodes({
        work: subgraph(inner, {
          context: ({ team }) => ({ plan: "paid" as const, teams: [team] }),
          input: () => ({}),
          output: ({ log }) => ({ log }),
        }),
        last: () => ({ log: ["last"] }),
        other: () => ({ log: ["other"] }),
      })
      .edges({
        [START]: "work",
        work: route(["last", "other"], (_state, { team }) => (team === "later" ? "other" : "last")),
        last: END,
        other: END,
      });
    const paused = run(graph, {
      store,
      thread: "t",
      context: { team: "y" },
      input: {},
      breakpoints: { before: ["work"] },
    });
    expect((await paused.result).status).toBe("paused");
    const { state: ended } = await resume(graph, { store, thread: "t", context: { team: "later" } }).result;
    expect(ended.log).toEqual(["premium", "sorted", "team later2", "other"]);
  });

  test("updateState takes the context for the edges after its nodes, and an edge that lacks it says so [FX41]", async () => {
    const graph = createGraph();
    const store = memoryStore();
    const update = { store, thread: "t", as: START, values: { log: ["mine"] } } as const;
    await expect(updateState(graph, update)).rejects.toThrow(
      /the route after "__start__" in graph "desk" threw.+gets the state and the context/s,
    );
    await updateState(graph, { ...update, context: { plan: "paid" } });
    expect((await getState(graph, { store, thread: "t" })).next).toEqual(["premium"]);
  });
});
