/**
 * Forks of forks, and forks around migrations: each continues from its checkpoint, and no once effect is repeated
 * silently.
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
  resume,
  run,
  START,
  type Store,
  subgraph,
  toolNode,
} from "statewright";
import { pruneThread } from "statewright/inspect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import { crashAt, getFailure, ignoreResult, type Place, places } from "../../support/both-stores.ts";

const Log = defineState({ log: channel.list(z.string()) });
const begin = () => ({ log: ["began"] });

describe.each(places)("%s", (_name, open) => {
  let place: Place;
  let store: Store;
  let paid: string[];
  /** Bodies fail after their effect. */
  let breaks: boolean;

  beforeEach(() => {
    place = open();
    store = place.store;
    paid = [];
    breaks = false;
  });
  afterEach(() => place.close());

  function pay(what: string) {
    return {
      run: () => {
        paid.push(what);
        if (breaks) throw new Error("broken");
        return { log: [what] };
      },
      effect: "once" as const,
    };
  }

  /** A closet in a room in a house, nested persistent subgraphs; the later version renames some nodes. */
  function house(version: 1 | 2, renamed: readonly string[]) {
    const named = (name: string): string => (version === 1 || !renamed.includes(name) ? name : `${name}_2`);
    const createPersistentSubgraph = (graph: Graph) =>
      subgraph(graph, {
        input: () => ({}),
        output: (_output, { ended }) => ({ log: [`${graph.name} ${(ended as { log: string[] }).log.length}`] }),
        persistence: "per-thread",
      });
    const closet = defineGraph({ name: "closet", state: Log, interrupts: { sign: z.string() } })
      .nodes({
        buy: pay("bought"),
        sign: async (_state, { interrupt }) => {
          const said = await interrupt("sign");
          if (breaks) throw new Error("broken");
          return { log: [said] };
        },
      })
      .edges({ [START]: "buy", buy: "sign", sign: END }) as Graph;
    const room = defineGraph({ name: "room", state: Log })
      .nodes({ pay: pay("paid"), [named("closet")]: createPersistentSubgraph(closet) })
      .edges({ [START]: "pay", pay: named("closet"), [named("closet")]: END }) as Graph;
    const graph = defineGraph({ name: "house", version, state: Log })
      .nodes({ [named("begin")]: begin, [named("room")]: createPersistentSubgraph(room) })
      .edges({ [START]: named("begin"), [named("begin")]: named("room"), [named("room")]: END }) as Graph;
    return { graph, room, closet };
  }

  function houses(...renamed: readonly string[]) {
    const [old, now] = [house(1, renamed), house(2, renamed)];
    const nodes = (...names: readonly string[]): Readonly<Record<string, string>> =>
      Object.fromEntries(names.flatMap((name) => (renamed.includes(name) ? [[name, `${name}_2`]] : [])));
    const room = (): object => ({ room: defineMigration({ from: old.room, to: now.room, nodes: nodes("closet") }) });
    const migration = defineMigration({
      from: old.graph,
      to: now.graph,
      nodes: nodes("begin", "room"),
      inner: renamed.includes("closet") ? room() : {},
    });
    return { old, now, migrations: [migration] };
  }

  const thread = "t";

  async function getId(line: string): Promise<number> {
    return (await store.head(thread, line))?.id ?? 0;
  }

  /** Returns the current list of a branch. */
  async function getLog(line: string): Promise<readonly unknown[]> {
    const rows = await store.state(thread, await getId(line));
    return rows.flatMap(({ deltas }) => deltas.flatMap(({ text }) => JSON.parse(text) as readonly unknown[]));
  }

  async function openKeys(result: ReturnType<typeof resume>["result"]): Promise<readonly string[]> {
    const end = await result;
    return end.status === "waiting" ? end.interrupts.map(({ key }) => key) : [end.status];
  }

  test("a fork of a fork repeats the call of a persistent subgraph, though the first fork continued inside that call [E22, E44]", async () => {
    const { graph, room } = house(1, []);
    await run(graph, { store, thread, input: {} }).result;
    await fork(room, { store, thread, at: await getId("main/room"), name: "one" });
    await fork(graph, { store, thread, at: await getId("one"), name: "two" });
    expect(await openKeys(resume(graph, { store, thread, branch: "two" }).result)).toEqual(["room.in_doubt"]);
    expect(paid).toEqual(["paid", "bought"]);
  });

  test("a fork from a migration point inside a subgraph call starts that call again [E44, E50]", async () => {
    const { old, now, migrations } = houses("room", "closet");
    await run(old.graph, { store, thread, input: {} }).result;
    await resume(now.graph, { store, thread, migrations }).result;
    await fork(now.graph, { store, thread, at: await getId("main"), name: "side" });
    const side = { store, thread, branch: "side", migrations };
    expect(await openKeys(resume(now.graph, side).result)).toEqual(["room_2.in_doubt"]);
    expect(paid).toEqual(["paid", "bought"]);
  });

  test("retention keeps the persistent subgraph state that a fork before the call continues from [E47]", async () => {
    const { old, now, migrations } = houses("begin");
    const answers = { "room.closet.sign": "yes" };
    for (const input of [{}, {}]) {
      await run(old.graph, { store, thread, input }).result;
      if (paid.length === 2) await resume(old.graph, { store, thread, answers }).result;
    }
    await resume(now.graph, { store, thread, migrations }).result;
    await fork(now.graph, { store, thread, at: await getId("main"), name: "side" });
    await resume(now.graph, { store, thread, answers: { "room.closet.sign": "yes" } }).result;
    for (let nth = 0; nth < 2; nth++) await pruneThread(store, { thread, keepLast: 1 });
    const side = { store, thread, branch: "side", migrations };
    expect(await openKeys(resume(now.graph, side).result)).toEqual(["room.in_doubt"]);
    expect(await getLog("side/room")).toEqual(["paid", "closet 2"]);
    expect(paid).toHaveLength(4);
  });

  test("a fork from a migration checkpoint of a subgraph continues from that checkpoint [E43, E50]", async () => {
    const { old, now, migrations } = houses("room", "closet");
    await run(old.graph, { store, thread, input: {} }).result;
    await resume(now.graph, { store, thread, migrations }).result;
    await fork(now.closet, { store, thread, at: await getId("main/room_2/closet_2"), name: "side" });
    const side = { store, thread, branch: "side", migrations };
    await resume(now.graph, side).result;
    const answers = { "room_2.closet_2.sign": "yes" };
    const { status, state } = await resume(now.graph, { ...side, answers }).result;
    expect([status, state, paid]).toEqual(["done", { log: ["began", "room 2"] }, ["paid", "bought"]]);
  });

  test("a migration interrupted between the namespaces of a graph and its subgraph loses neither [E50]", async () => {
    const { old, now, migrations } = houses("room", "closet");
    await run(old.graph, { store, thread, input: {} }).result;
    const dying = crashAt(store, ({ branch }) => branch === "main/room_2", "after");
    ignoreResult(resume(now.graph, { store: dying.store, thread, migrations }).result);
    await dying.dead;
    store = place.crash();
    expect(await openKeys(resume(now.graph, { store, thread, migrations }).result)).toEqual(["room_2.closet_2.sign"]);
    const answers = { "room_2.closet_2.sign": "yes" };
    const { state } = await resume(now.graph, { store, thread, migrations, answers }).result;
    expect([state, paid]).toEqual([{ log: ["began", "room 2"] }, ["paid", "bought"]]);
  });

  test("a nested persistent subgraph keeps its state on a fork migrated before the next call [E22, E50]", async () => {
    const { old, now, migrations } = houses("room", "closet");
    await run(old.graph, { store, thread, input: {} }).result;
    await resume(old.graph, { store, thread, answers: { "room.closet.sign": "yes" } }).result;
    await fork(old.graph, { store, thread, at: await getId("main"), name: "side" });
    await run(now.graph, { store, thread, branch: "side", migrations, input: {} }).result;
    const side = { store, thread, branch: "side", answers: { "room_2.closet_2.sign": "again" } };
    const { state } = await resume(now.graph, side).result;
    // The room and its closet were called twice.
    expect(state).toEqual({ log: ["began", "room 2", "began", "room 4"] });
    expect(await getLog("side/room_2/closet_2")).toEqual(["bought", "yes", "bought", "again"]);
  });

  test("a fork of a fork inside a subgraph uses the answers of that fork, not those of the original branch [E44]", async () => {
    const { graph, closet } = house(1, []);
    await run(graph, { store, thread, input: {} }).result;
    await fork(closet, { store, thread, at: await getId("main/room/closet"), name: "one" });
    await resume(graph, { store, thread, branch: "one" }).result;
    breaks = true;
    for (const branch of ["one", "main"]) {
      const answers = { "room.closet.sign": `said on ${branch}` };
      await getFailure(resume(graph, { store, thread, branch, answers }).result, "node_failed");
    }
    breaks = false;
    await fork(closet, { store, thread, at: await getId("one/room/closet"), name: "two" });
    await resume(graph, { store, thread, branch: "two" }).result;
    expect(await getLog("two/room/closet")).toEqual(["bought", "said on one"]);
  });

  function createTillGraph(): Graph {
    return defineGraph({ name: "till", state: Log })
      .nodes({ begin, charge: pay("charged") })
      .edges({ [START]: "begin", begin: "charge", charge: END }) as Graph;
  }

  function createShop(): Graph {
    const charge = defineTool({
      name: "charge",
      description: "Pay.",
      input: z.object({}),
      effect: "once",
      run: () => `${paid.push("charged")}`,
    });
    const call = { type: "call" as const, id: "c", name: "charge", args: {} };
    return defineGraph({ name: "shop", state: defineState({ messages: channel.messages() }) })
      .nodes({
        model: () => ({
          messages: [{ role: "assistant" as const, id: "m", finish: "calls" as const, content: [call] }],
        }),
        tools: toolNode({ tools: [charge] }),
      })
      .edges({ [START]: "model", model: "tools", tools: END }) as Graph;
  }

  function createMachineGraph(): Graph {
    const machine = setup({ actors: { charge: fromPromise(async () => paid.push("charged")) } }).createMachine({
      id: "drawn",
      initial: "paying",
      states: { paying: { invoke: { src: "charge", onDone: "paid" } }, paid: { type: "final" } },
    });
    return durableMachine(machine, { version: 1 }) as Graph;
  }

  /** The process dies when the start is durable: the effect is in doubt. */
  async function startAndCrash(graph: Graph): Promise<void> {
    const dying = crashAt(store, ({ effects = [] }) => effects.some(({ effect }) => effect === "once"), "after");
    ignoreResult(run(graph, { store: dying.store, thread, input: {} }).result);
    await dying.dead;
    store = place.crash();
  }

  const [no, yes] = [{ in_doubt: { happened: false } }, { in_doubt: { happened: true } }];

  test.each([
    ["a node", createTillGraph],
    ["a call", createShop],
    ["a promise", createMachineGraph],
  ])(
    "%s that did not happen on this branch is not repeated silently when another branch has made it since [E44]",
    async (_what, graphOf) => {
      const graph = graphOf();
      await startAndCrash(graph);
      await resume(graph, { store, thread }).result;
      await fork(graph, { store, thread, at: await getId("main"), name: "side" });
      await resume(graph, { store, thread, branch: "side" }).result;
      expect((await resume(graph, { store, thread, branch: "side", answers: no }).result).status).toBe("done");
      expect(paid).toEqual(["charged"]);
      expect(await openKeys(resume(graph, { store, thread, answers: no }).result)).toEqual(["in_doubt"]);
      expect([(await resume(graph, { store, thread, answers: yes }).result).status, paid]).toEqual([
        "done",
        ["charged"],
      ]);
    },
  );

  test("a fork ignores an earlier in-doubt answer when the origin branch has since started the effect itself [E44]", async () => {
    const graph = createTillGraph();
    await startAndCrash(graph);
    await fork(graph, { store, thread, at: await getId("main"), name: "one" });
    await resume(graph, { store, thread, branch: "one" }).result;
    breaks = true;
    await getFailure(resume(graph, { store, thread, branch: "one", answers: no }).result, "node_failed");
    breaks = false;
    expect(paid).toEqual(["charged"]);
    await fork(graph, { store, thread, at: await getId("one"), name: "two" });
    const asked = await resume(graph, { store, thread, branch: "two" }).result;
    expect(asked).toMatchObject({ status: "waiting", interrupts: [{ payload: { alreadyOn: "one" } }] });
    expect(paid).toEqual(["charged"]);
  });
});
