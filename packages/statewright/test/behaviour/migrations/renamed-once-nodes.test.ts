/**
 * A branch of a newer graph version knows the once effects recorded under the older name of node, tool, state or
 * graph.
 */
import {
  channel,
  defineGraph,
  defineMigration,
  defineState,
  defineTool,
  durableMachine,
  END,
  fork,
  type Graph,
  type Migration,
  resume,
  run,
  START,
  subgraph,
  toolNode,
} from "statewright";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import { type Place, places } from "../../support/both-stores.ts";

describe.each(places)("%s", (_name, open) => {
  let place: Place;
  let paid: number;

  beforeEach(() => {
    place = open();
    paid = 0;
  });
  afterEach(() => place.close());

  const pay = (): string => `receipt ${++paid}`;
  const Log = defineState({ log: channel.list(z.string()) });
  const begin = () => ({ log: ["began"] });
  const paying = { run: () => ({ log: [pay()] }), effect: "once" as const };

  /** Pays under the older version, forks from before the payment, and continues under the newer version. */
  async function forkThread(old: Graph, at: number) {
    const { store } = place;
    const first = await run(old, { store, thread: "t", input: {} }).result;
    if (first.status === "waiting") await resume(old, { store, thread: "t", answers: { PAY: true } }).result;
    expect(paid).toBe(1);
    const branch = await fork(old, { store, thread: "t", at, name: "other" });
    return (graph: Graph, more: object = {}) => resume(graph, { store, thread: "t", branch, ...more }).result;
  }

  /** Answers the in-doubt interrupt with the recorded outcome instead of a rerun. */
  async function isKnown(old: Graph, graph: Graph, migration: Migration, at = 1): Promise<object> {
    const again = await forkThread(old, at);
    const migrations = [migration];
    const asked = await again(graph, { migrations });
    if (asked.status !== "waiting") return asked;
    const key = asked.interrupts[0]?.key ?? "";
    const end = await again(graph, { migrations, answers: { [key]: { happened: true } } });
    return { key, payload: asked.interrupts[0]?.payload, status: end.status, state: end.state, paid };
  }

  function steps(version: number, name: string): Graph {
    return defineGraph({ name: "steps", version, state: Log })
      .nodes({ begin, [name]: paying })
      .edges({ [START]: "begin", begin: name, [name]: END }) as Graph;
  }

  test("a renamed once node is not run again silently on a fork [E44, E50]", async () => {
    const [old, graph] = [steps(1, "charge"), steps(2, "bill")];
    const migration = defineMigration({ from: old, to: graph, nodes: { charge: "bill" } });
    expect(await isKnown(old, graph, migration)).toMatchObject({
      key: "in_doubt",
      payload: { node: "bill", alreadyOn: "main", outcome: { log: ["receipt 1"] } },
      ...{ status: "done", state: { log: ["began", "receipt 1"] }, paid: 1 },
    });
  });

  test("a renamed once node is in doubt on a fork, also without a migration", async () => {
    const again = await forkThread(steps(1, "charge"), 1);
    expect(await again(steps(2, "bill"))).toMatchObject({ status: "waiting", interrupts: [{ key: "in_doubt" }] });
    const end = await again(steps(2, "bill"), { onPriorEffect: "reuse" });
    expect([end.status, end.state, paid]).toEqual(["done", { log: ["began", "receipt 1"] }, 1]);
  });

  test("the prior result of a renamed once node that no longer fits the graph is not reused, and the run interrupts", async () => {
    const Sums = defineState({ log: channel.list(z.string()), sum: z.number().default(0) });
    const old = defineGraph({
      name: "steps",
      version: 1,
      state: defineState({ log: channel.list(z.string()), paid: z.string().default("") }),
    })
      .nodes({ begin, charge: { run: () => ({ paid: pay() }), effect: "once" } })
      .edges({ [START]: "begin", begin: "charge", charge: END });
    const graph = defineGraph({ name: "steps", version: 2, state: Sums })
      .nodes({ begin, charge: { run: () => ({ sum: ++paid }), effect: "once" } })
      .edges({ [START]: "begin", begin: "charge", charge: END });
    const again = await forkThread(old as Graph, 1);
    const asked = await again(graph as Graph, { onPriorEffect: "reuse" });
    expect(asked).toMatchObject({
      status: "waiting",
      interrupts: [{ key: "in_doubt", payload: { alreadyOn: "main" } }],
    });
    const end = await again(graph as Graph, { answers: { in_doubt: { happened: true, update: { sum: 7 } } } });
    expect([end.status, end.state, paid]).toEqual(["done", { log: ["began"], sum: 7 }, 1]);
  });

  test("the prior result of a once node of the same version is reused, also when its schema does not accept its own output", async () => {
    const graph = defineGraph({
      name: "steps",
      state: defineState({ log: channel.list(z.string()), sum: z.string().transform(Number).default(0) }),
    })
      .nodes({ begin, charge: { run: () => ({ sum: `${++paid}` }), effect: "once" } })
      .edges({ [START]: "begin", begin: "charge", charge: END }) as Graph;
    const again = await forkThread(graph, 1);
    const end = await again(graph, { onPriorEffect: "reuse" });
    expect([end.status, end.state, paid]).toEqual(["done", { log: ["began"], sum: 1 }, 1]);
  });

  function calling(version: number, name: string): Graph {
    let asked = 0;
    const tool = defineTool({ name, description: "Pay.", input: z.object({ cents: z.int() }), run: pay });
    return defineGraph({ name: "calling", version, state: defineState({ messages: channel.messages() }) })
      .nodes({
        model: () => {
          asked += 1;
          const call = { type: "call" as const, id: `c${version}_${asked}`, name, args: { cents: 5 } };
          return {
            messages: [{ role: "assistant" as const, id: `m${asked}`, finish: "calls" as const, content: [call] }],
          };
        },
        tools: toolNode({ tools: [tool] }),
      })
      .edges({ [START]: "model", model: "tools", tools: END }) as Graph;
  }

  test.each([
    ["the model request is repeated", 1],
    ["the call is repeated", 2],
  ])("a once call of a renamed tool is not repeated silently on a fork, when %s [E44, E50]", async (_when, at) => {
    const [old, graph] = [calling(1, "charge"), calling(2, "bill")];
    const migration = defineMigration({ from: old, to: graph, tools: { charge: "bill" } });
    const { state, ...known } = (await isKnown(old, graph, migration, at)) as { readonly state: object };
    expect(known).toMatchObject({ payload: { tool: "bill", alreadyOn: "main" }, status: "done", paid: 1 });
    expect(state).toMatchObject({ messages: [{}, { role: "tool", name: "bill", isError: false }] });
  });

  function createMachineGraph(version: number, name: string): Graph {
    const machine = setup({ actors: { charge: fromPromise(async () => pay()) } }).createMachine({
      id: "order",
      initial: "ready",
      states: {
        ready: { on: { PAY: name } },
        [name]: { invoke: { src: "charge", onDone: "paid" } },
        paid: { type: "final" },
      },
    });
    return durableMachine(machine, { version }) as Graph;
  }

  test("a once promise of a renamed state is not started again silently on a fork [E44, E50]", async () => {
    const [old, graph] = [createMachineGraph(1, "paying"), createMachineGraph(2, "settling")];
    const migration = defineMigration({ from: old, to: graph, nodes: { paying: "settling" } });
    const again = await forkThread(old, 1);
    const migrations = [migration];
    await again(graph, { migrations });
    const asked = await again(graph, { migrations, answers: { PAY: true } });
    expect([asked.status, paid]).toEqual(["waiting", 1]);
    const end = await again(graph, { migrations, answers: { in_doubt: { happened: true } } });
    expect([end.status, paid]).toEqual(["done", 1]);
  });

  function keeping(version: number, names: readonly [string, string]): Graph {
    const innermost = defineGraph({ name: "innermost", state: Log })
      .nodes({ paying })
      .edges({ [START]: "paying", paying: END });
    const createOuterGraph = (name: string, graph: Graph) =>
      defineGraph({ name: "inner", state: Log })
        .nodes({
          [name]: subgraph(graph, {
            input: () => ({}),
            output: () => ({ log: ["called"] }),
            persistence: "per-thread",
          }),
        })
        .edges({ [START]: name, [name]: END }) as Graph;
    const inner = createOuterGraph(names[1], innermost as Graph);
    return defineGraph({ name: "keeping", version, state: Log })
      .nodes({
        begin,
        [names[0]]: subgraph(inner, {
          input: () => ({}),
          output: () => ({ log: ["called"] }),
          persistence: "per-thread",
        }),
      })
      .edges({ [START]: "begin", begin: names[0], [names[0]]: END }) as Graph;
  }

  test("a once effect of a persistent subgraph is not repeated silently on a fork, when its node and an outer node were renamed [E44, E50]", async () => {
    const [old, graph] = [keeping(1, ["research", "look"]), keeping(2, ["study", "see"])];
    const inside = [old, graph].map(
      (each, nth) => (each.nodes.get(["research", "study"][nth] ?? "")?.subgraph?.graph ?? each) as Graph,
    );
    const [from = old, to = graph] = inside;
    const renamed = defineMigration({ from, to, nodes: { look: "see" } });
    const migration = defineMigration({
      from: old,
      to: graph,
      nodes: { research: "study" },
      inner: { research: renamed },
    });
    expect(await isKnown(old, graph, migration)).toMatchObject({
      key: "study.see.in_doubt",
      payload: { node: "paying", alreadyOn: "main" },
      ...{ status: "done", paid: 1 },
    });
  });
});
