/**
 * The machine of a graph under a plain `createActor` with provided actors: the same steps as the engine, without
 * saves.
 */
import { describe, expect, test } from "vitest";
import { createActor, fromCallback, fromPromise, toPromise } from "xstate";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fanOut,
  type Graph,
  inputNode,
  type Json,
  join,
  route,
  run,
  START,
} from "../../src/index.ts";

/** Provides nodes as promises, and the actor that ends a superstep after its last node. */
function plainActor(
  graph: Graph,
  first: readonly string[],
  next: (done: readonly string[]) => readonly string[],
  bodies: Bodies,
) {
  let running = first;
  const done = new Set<string>();
  const nodes = [...graph.nodes.keys()].map((node) => [node, fromPromise(async () => bodies[node]?.())]);
  const commit = fromCallback(({ self, sendBack }) => {
    done.add(self.id.slice(0, -".commit".length));
    if (done.size < running.length) return;
    running = next([...done]);
    done.clear();
    sendBack({ type: "step.commit", to: running });
  });
  const actor = createActor(graph.machine.provide({ actors: { ...Object.fromEntries(nodes), "step.commit": commit } }));
  const enteredStates: Json[] = [];
  actor.subscribe({ next: ({ value }) => enteredStates.push(value as Json), error: () => undefined });
  actor.start();
  actor.send({ type: "step.commit", to: first });
  return { actor, enteredStates };
}

type Bodies = Readonly<Record<string, () => unknown>>;

async function listStates(graph: Graph): Promise<readonly Json[]> {
  const enteredStates: Json[] = [];
  const handle = run(graph, {});
  handle.on((event) => {
    if (event.type === "transition.taken") enteredStates.push(event.to);
  });
  await handle.result;
  return enteredStates;
}

describe("graph machine under a plain createActor", () => {
  test("a sequential graph machine with a loop runs to its end under createActor [E51]", async () => {
    const graph = defineGraph({ name: "line", state: defineState({ n: z.number().default(0) }) })
      .nodes({ count: (state) => ({ n: state.n + 1 }), check: () => undefined })
      .edges({
        [START]: "count",
        count: "check",
        check: route(["count", END], (state) => (state.n < 3 ? "count" : END)),
      });
    let n = 0;
    const next = ([done]: readonly string[]) => (done === "count" ? ["check"] : n < 3 ? ["count"] : []);
    const { actor, enteredStates } = plainActor(graph as Graph, ["count"], next, { count: () => (n += 1) });
    await toPromise(actor);
    expect(n).toBe(3);
    expect(actor.getSnapshot()).toMatchObject({ status: "done", value: "done" });
    expect(enteredStates.slice(1)).toEqual(await listStates(graph as Graph));
  });

  test("a graph machine with parallel nodes, a fan-out and a join runs under createActor, with one commit per superstep [E51]", async () => {
    const graph = defineGraph({ name: "fan", state: defineState({ seen: channel.list(z.string()) }) })
      .nodes({
        plan: () => undefined,
        check: () => undefined,
        each: inputNode(z.string(), (_state, { input }) => ({ seen: [input] })),
        meet: () => undefined,
      })
      .edges({
        [START]: ["plan", "check"],
        plan: fanOut("each", () => ["x", "y"]),
        check: join("meet"),
        each: join("meet"),
        meet: END,
      });
    const next = (done: readonly string[]) =>
      done.includes("plan") ? ["each"] : done.includes("each") ? ["meet"] : [];
    const { actor, enteredStates } = plainActor(graph as Graph, ["plan", "check"], next, {});
    await toPromise(actor);
    expect(actor.getSnapshot().status).toBe("done");
    expect(enteredStates.slice(1)).toEqual(await listStates(graph as Graph));
  });

  test("a failed node of a graph machine under createActor stays in its state, and continues on run.resumed [E51]", async () => {
    const graph = defineGraph({ name: "line", state: defineState({}) })
      .nodes({ work: () => undefined })
      .edges({ [START]: "work", work: END });
    let attempts = 0;
    const { actor, enteredStates } = plainActor(graph as Graph, ["work"], () => [], {
      work: () => {
        attempts += 1;
        if (attempts === 1) throw new Error("no luck");
      },
    });
    await new Promise<void>((resolve) => actor.subscribe((at) => at.hasTag("failed") && resolve()));
    actor.send({ type: "run.resumed" });
    await toPromise(actor);
    expect(enteredStates).toEqual([
      "start",
      { work: "executing" },
      { work: "failed" },
      { work: "executing" },
      { work: "committing" },
      "done",
    ]);
  });

  test("a missing actor under createActor fails with an error that says so", async () => {
    const graph = defineGraph({ name: "line", state: defineState({}) })
      .nodes({ work: () => undefined })
      .edges({ [START]: "work", work: END });
    const actor = createActor(graph.machine);
    const failed = new Promise<unknown>((resolve) => {
      actor.system.inspect((event) => {
        if (event.type === "@xstate.event" && event.event.type === "xstate.error.actor.work")
          resolve(event.event["error"]);
      });
    });
    actor.start();
    actor.send({ type: "step.commit", to: ["work"] });
    expect(await failed).toMatchObject({ message: expect.stringContaining('"work"') });
    expect(actor.getSnapshot().value).toEqual({ work: "failed" });
  });
});
