/** Typical user programs: they compile without casts, type arguments and `any`, and run. */
import { readFileSync } from "node:fs";
import { expect, expectTypeOf, test } from "vitest";
import { assign, fromPromise, setup } from "xstate";
import * as z from "zod";
import {
  channel,
  commandTargets,
  decide,
  defineContext,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  durableMachine,
  END,
  edit,
  fanOut,
  fork,
  type Graph,
  type GraphTypes,
  getHistory,
  getMessageText,
  goto,
  inject,
  inputNode,
  type Json,
  type JsonObject,
  join,
  listToolCalls,
  type Model,
  memoryStore,
  overwrite,
  type RunOptions,
  resume,
  route,
  run,
  START,
  send,
  subgraph,
  toolNode,
} from "../../src/index.ts";
import { createVirtualWorld } from "../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });

test("a hand-written chat loop runs with a model node and a tool node", async () => {
  const weather = defineTool({
    name: "weather",
    description: "The weather in a city.",
    input: z.object({ city: z.string() }),
    run: ({ city }) => `Rain in ${city}`,
  });
  const tools = toolNode({ tools: [weather] });
  const model: Model = {
    id: "scripted",
    respond: async ({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? { content: [{ type: "text", text: "Take an umbrella" }], finish: "stop" }
        : { content: [{ type: "call", id: "c1", name: "weather", args: { city: "Oslo" } }], finish: "calls" },
  };
  const chat = defineGraph({ name: "chat", state: defineState({ messages: channel.messages() }) })
    .nodes({
      think: async (state, runtime) => ({
        messages: await runtime.model({
          model,
          request: { messages: state.messages, tools: tools.registry.forModel() },
        }),
      }),
      tools,
    })
    .edges({
      [START]: "think",
      think: route(["tools", END], ({ messages }) => {
        const last = messages.at(-1);
        return last?.role === "assistant" && listToolCalls(last).length > 0 ? "tools" : END;
      }),
      tools: "think",
    });
  const input = { messages: [{ role: "user", id: "u1", content: [{ type: "text", text: "Oslo?" }] }] } as const;
  const { state } = await run(chat, { input }).result;
  expect(state.messages.map(getMessageText)).toEqual(["Oslo?", "", "Rain in Oslo", "Take an umbrella"]);
});

test("a map-reduce graph runs a task for each item and a node that sums up", async () => {
  const words = defineGraph({
    name: "words",
    state: defineState({
      files: z.array(z.string()),
      counts: channel.list(z.object({ file: z.string(), words: z.number() })),
      total: z.number().default(0),
    }),
  })
    .nodes({
      split: () => undefined,
      count: inputNode(z.object({ file: z.string(), text: z.string() }), (_state, { input }) => ({
        counts: [{ file: input.file, words: input.text.split(" ").length }],
      })),
      sum: (state) => ({ total: state.counts.reduce((sum, count) => sum + count.words, 0) }),
    })
    .edges({
      [START]: "split",
      split: fanOut("count", (state) => state.files.map((file) => ({ file, text: `the text of ${file}` })), {
        otherwise: END,
      }),
      count: "sum",
      sum: END,
    });
  const { state } = await run(words, { input: { files: ["a", "b"] } }).result;
  expect(state.total).toBe(8);
  expectTypeOf(state.counts[0]).toEqualTypeOf<{ readonly file: string; readonly words: number } | undefined>();
});

test("a supervisor graph hands work to other nodes", async () => {
  const team = defineGraph({ name: "team", state: defineState({ task: z.string(), log: channel.list(z.string()) }) })
    .nodes({
      boss: (state) => {
        if (state.log.length === 0) return goto("research", { log: [`find out: ${state.task}`] });
        if (state.log.length === 2) return goto("write");
        return goto(END);
      },
      research: () => goto("boss", { log: ["found"] }),
      write: (state) => goto("boss", { log: [`wrote after ${state.log.length}`] }),
    })
    .edges({
      [START]: "boss",
      boss: commandTargets("research", "write", END),
      research: commandTargets("boss"),
      write: commandTargets("boss"),
    });
  const { state } = await run(team, { input: { task: "rivers" } }).result;
  expect(state.log).toEqual(["find out: rivers", "found", "wrote after 2"]);
});

test("a node with retry, timeout and cache policies runs", async () => {
  let asked = 0;
  const lookup = defineGraph({
    name: "lookup",
    state: defineState({ city: z.string(), log: channel.list(z.string()) }),
  })
    .nodes({
      fetch: {
        run: async (state, { attempt, signal }) => {
          asked++;
          if (attempt === 1) throw new Error("busy");
          return { log: [`${state.city}, ${signal.aborted ? "late" : "in time"}`] };
        },
        retry: { attempts: 2, initialMs: 0, on: (error) => error instanceof Error && error.message === "busy" },
        timeoutMs: 1_000,
        cache: { key: (state) => state.city, ttlMs: 60_000 },
      },
    })
    .edges({ [START]: "fetch", fetch: END });
  const world = createVirtualWorld();
  for (const _ of [1, 2]) {
    const { result } = run(lookup, { input: { city: "Oslo" }, world });
    await world.advance(1);
    const { state } = await result;
    expect(state.log).toEqual(["Oslo, in time"]);
  }
  expect(asked).toBe(2);
});

test("an error handler routes to another node", async () => {
  const order = defineGraph({ name: "order", state: Log })
    .nodes({
      pay: {
        run: () => {
          throw new Error("no funds");
        },
        onError: (_state, { error }) => goto("apologise", { log: [error.code] }),
      },
      apologise: () => ({ log: ["sorry"] }),
    })
    .edges({ [START]: "pay", pay: commandTargets("apologise"), apologise: END });
  expect((await run(order, {}).result).state.log).toEqual(["node_failed", "sorry"]);
});

test("parallel branches are joined", async () => {
  const build = defineGraph({ name: "build", state: Log })
    .nodes({
      lint: () => ({ log: ["lint"] }),
      compile: () => ({ log: ["compile"] }),
      test: () => ({ log: ["test"] }),
      ship: (state) => ({ log: [`ship after ${state.log.length}`] }),
    })
    .edges({ [START]: ["lint", "compile"], lint: join("ship"), compile: "test", test: join("ship"), ship: END });
  expect((await run(build, {}).result).state.log).toEqual(["lint", "compile", "test", "ship after 3"]);
});

test("a deferred node runs after a route to several targets", async () => {
  const digest = defineGraph({
    name: "digest",
    state: defineState({ topics: z.array(z.string()), log: channel.list(z.string()) }),
  })
    .nodes({
      plan: () => undefined,
      news: () => ({ log: ["news"] }),
      mail: () => ({ log: ["mail"] }),
      more: () => ({ log: ["more mail"] }),
      digest: { run: (state) => ({ log: [`digest of ${state.log.length}`] }), defer: true },
    })
    .edges({
      [START]: "plan",
      plan: route(
        ["news", "mail", END],
        (state) => [...(state.topics.includes("news") ? ["news" as const] : []), "mail"],
        { many: true },
      ),
      news: "digest",
      mail: "more",
      more: "digest",
      digest: END,
    });
  const { state } = await run(digest, { input: { topics: ["news"] } }).result;
  expect(state.log).toEqual(["news", "mail", "more mail", "digest of 3"]);
});

test("an interrupt with a payload is answered in another process", async () => {
  const pay = defineGraph({
    name: "pay",
    state: defineState({ cents: z.number(), log: channel.list(z.string()) }),
    interrupts: {
      approve: {
        payload: z.object({ cents: z.number() }),
        answer: z.object({ ok: z.boolean(), note: z.string().default("none") }),
      },
    },
  })
    .nodes({
      ask: async (state, { interrupt }) => {
        const { ok, note } = await interrupt("approve", { payload: { cents: state.cents } });
        expectTypeOf(note).toEqualTypeOf<string>();
        return { log: [ok ? "paid" : "declined", note] };
      },
    })
    .edges({ [START]: "ask", ask: END });
  const store = memoryStore();
  const first = await run(pay, { store, thread: "t", input: { cents: 9 } }).result;
  expect(first.status === "waiting" && first.interrupts[0]?.payload).toEqual({ cents: 9 });
  const { state } = await resume(pay, { store, thread: "t", answers: { approve: { ok: true } } }).result;
  expect(state.log).toEqual(["paid", "none"]);
});

test("several interrupts at once are answered by key and by id", async () => {
  const trip = defineGraph({
    name: "trip",
    state: Log,
    interrupts: { name: z.string(), seats: z.number() },
  })
    .nodes({
      who: async (_state, { interrupt }) => ({ log: [await interrupt("name")] }),
      seats: async (_state, { interrupt }) => ({ log: ["x".repeat(await interrupt("seats"))] }),
    })
    .edges({ [START]: ["who", "seats"], who: END, seats: END });
  const store = memoryStore();
  const first = await run(trip, { store, thread: "t" }).result;
  if (first.status !== "waiting") throw new Error(first.status);
  const id = first.interrupts.find(({ key }) => key === "seats")?.id ?? "";
  const { state } = await resume(trip, { store, thread: "t", answers: { name: "Ann", [id]: 3 } }).result;
  expect(state.log).toEqual(["Ann", "xxx"]);
});

test("a context has defaults", async () => {
  const User = defineContext({
    name: z.string(),
    locale: z.enum(["en", "de"]).default("en"),
    tag: z.string().optional(),
  });
  const greet = defineGraph({ name: "greet", state: Log, context: User })
    .nodes({
      greet: (_state, { context }) => {
        expectTypeOf(context.locale).toEqualTypeOf<"en" | "de">();
        return { log: [`${context.locale === "en" ? "Hello" : "Hallo"} ${context.name}${context.tag ?? ""}`] };
      },
    })
    .edges({ [START]: "greet", greet: END });
  expect((await run(greet, { context: { name: "Ann" } }).result).state.log).toEqual(["Hello Ann"]);
  expect((await run(greet, { context: { name: "Ann", locale: "de", tag: "!" } }).result).state.log).toEqual([
    "Hallo Ann!",
  ]);
});

test("a channel has a custom reducer", async () => {
  const Best = defineState({
    best: channel.reduce(
      z.object({ name: z.string(), score: z.number() }).nullable().default(null),
      (best, entry: { readonly name: string; readonly score: number }) =>
        best === null || entry.score > best.score ? entry : best,
    ),
  });
  const race = defineGraph({ name: "race", state: Best })
    .nodes({
      one: () => ({ best: { name: "one", score: 3 } }),
      two: () => ({ best: { name: "two", score: 7 } }),
    })
    .edges({ [START]: ["one", "two"], one: END, two: END });
  const { state } = await run(race, {}).result;
  expectTypeOf(state.best).toEqualTypeOf<{ readonly name: string; readonly score: number } | null>();
  expect(state.best?.name).toBe("two");
});

test("a record channel is merged by key", async () => {
  const stock = defineGraph({
    name: "stock",
    state: defineState({ stock: channel.record(z.object({ left: z.number() })) }),
  })
    .nodes({
      fill: () => ({ stock: { apple: { left: 3 }, pear: { left: 1 } } }),
      sell: (state) => ({ stock: { apple: { left: (state.stock["apple"]?.left ?? 0) - 1 }, pear: undefined } }),
    })
    .edges({ [START]: "fill", fill: "sell", sell: END });
  expect((await run(stock, {}).result).state.stock).toEqual({ apple: { left: 2 } });
});

test("an ephemeral channel is visible in the next step and not later", async () => {
  const hints = defineGraph({
    name: "hints",
    state: defineState({ hint: channel.ephemeral(z.string()), log: channel.list(z.string()) }),
  })
    .nodes({
      give: () => ({ hint: "left" }),
      take: (state) => ({ log: [state.hint?.toUpperCase() ?? "gone"] }),
      again: (state) => ({ log: [state.hint?.toUpperCase() ?? "gone"] }),
    })
    .edges({ [START]: "give", give: "take", take: "again", again: END });
  expect((await run(hints, {}).result).state.log).toEqual(["LEFT", "gone"]);
});

const Customer = defineContext({ customer: z.string() });
const Shop = defineState({ messages: channel.messages(), cart: z.array(z.string()).default([]) });
const refund = defineTool({
  name: "refund",
  description: "Return money for one order.",
  input: z.object({ order: z.string(), cents: z.number() }),
  inject: { customer: Customer.from((context) => context.customer), cart: Shop.from((state) => state.cart) },
  run: ({ order, cents }, { injected }) => {
    expectTypeOf(injected.cart).toEqualTypeOf<readonly string[]>();
    return `${cents} for ${order} to ${injected.customer}, ${injected.cart.length} in the cart`;
  },
});

test("a tool has hidden arguments, and middleware narrows a call to its tool", async () => {
  const limit = defineMiddleware({
    name: "limit",
    beforeTool: ({ call }) => {
      if (!refund.is(call)) return decide.allow();
      expectTypeOf(call.args).toEqualTypeOf<{ order: string; cents: number }>();
      return call.args.cents > 100 ? decide.deny(`${call.args.cents} is too much`) : decide.allow();
    },
  });
  const shop = defineGraph({ name: "shop", state: Shop, context: Customer })
    .nodes({ tools: toolNode({ tools: [refund], middleware: [limit] }) })
    .edges({ [START]: "tools", tools: END });
  const call = (id: string, cents: number) =>
    ({ type: "call", id, name: "refund", args: { order: "7", cents } }) as const;
  const { state } = await run(shop, {
    context: { customer: "Ann" },
    input: {
      cart: ["book"],
      messages: [{ role: "assistant", id: "a1", content: [call("c1", 9), call("c2", 900)], finish: "calls" }],
    },
  }).result;
  expect(state.messages.slice(1).map(getMessageText)).toEqual([
    "9 for 7 to Ann, 1 in the cart",
    expect.stringContaining("900 is too much"),
  ]);
});

test("an XState machine runs as a durable machine", async () => {
  const machine = setup({
    types: {
      input: { order: "" },
      context: { order: "", receipt: "" },
    },
    actors: { charge: fromPromise(async ({ input }: { input: { order: string } }) => `receipt ${input.order}`) },
  }).createMachine({
    id: "order",
    context: ({ input }) => ({ order: input.order, receipt: "" }),
    initial: "charging",
    states: {
      charging: {
        invoke: {
          src: "charge",
          input: ({ context }) => ({ order: context.order }),
          onDone: { target: "paid", actions: assign({ receipt: ({ event }) => event.output }) },
        },
      },
      paid: { type: "final" },
    },
  });
  const graph = durableMachine(machine, { version: 1, effects: { charge: "idempotent" } });
  const { state } = await run(graph, { store: memoryStore(), thread: "t", input: { order: "7" } }).result;
  expectTypeOf(state.context).toEqualTypeOf<{ order: string; receipt: string }>();
  expect(state.context.receipt).toBe("receipt 7");
});

test("history has typed nodes and changes, and a fork has an edit", async () => {
  const store = memoryStore();
  const price = defineGraph({ name: "price", state: defineState({ cents: z.number(), log: channel.list(z.string()) }) })
    .nodes({
      check: (state) => ({ log: [`checked ${state.cents}`] }),
      pay: (state) => ({ log: [`paid ${state.cents}`] }),
    })
    .edges({ [START]: "check", check: "pay", pay: END });
  await run(price, { store, thread: "t", input: { cents: 9 } }).result;
  let at = 0;
  const seen: string[] = [];
  for await (const { node, changes, checkpointId } of getHistory(price, { store, thread: "t" })) {
    expectTypeOf(node).toEqualTypeOf<"check" | "pay" | undefined>();
    seen.push(`${node ?? "input"}: ${changes.log?.kind ?? "nothing"}`);
    if (node === "check") at = checkpointId;
  }
  expect(seen).toEqual(["pay: append", "check: append", "input: nothing"]);
  const branch = await fork(price, { store, thread: "t", at, name: "cheaper", update: { cents: 8 } });
  const { state } = await resume(price, { store, thread: "t", branch }).result;
  expect(state.log).toEqual(["checked 9", "paid 8"]);
});

test("generic functions accept any graph", async () => {
  const listNodes = <Types extends GraphTypes>(graph: Graph<Types>): readonly string[] => [...graph.nodes.keys()];
  const runTwice = async <Types extends GraphTypes>(graph: Graph<Types>, options: RunOptions<Types>) => {
    await run(graph, options).result;
    return run(graph, options).result;
  };
  const count = defineGraph({ name: "count", state: defineState({ count: z.number() }) })
    .nodes({ more: (state) => ({ count: state.count + 1 }) })
    .edges({ [START]: "more", more: END });
  const graphs: readonly Graph[] = [count];
  expect(graphs.map(listNodes)).toEqual([["more"]]);
  const { state } = await runTwice(count, { input: { count: 1 } });
  expectTypeOf(state.count).toEqualTypeOf<number>();
  expect(state.count).toBe(2);
});

test("recipes over a draft are applied in order", async () => {
  const Tree = defineState({
    tree: z.object({ leaves: z.array(z.object({ size: z.number() })) }).default({ leaves: [] }),
    name: z.string().default(""),
  });
  const grow = defineGraph({ name: "grow", state: Tree })
    .nodes({
      grow: () => [
        edit((draft) => draft.tree.leaves.push({ size: 1 })),
        edit((draft) => {
          for (const leaf of draft.tree.leaves) leaf.size += 1;
          draft.name = "oak";
        }),
      ],
    })
    .edges({ [START]: "grow", grow: END });
  expect((await run(grow, {}).result).state).toEqual({ tree: { leaves: [{ size: 2 }] }, name: "oak" });
});

test("an overwrite of a list is the base for other writes", async () => {
  const tidy = defineGraph({ name: "tidy", state: Log })
    .nodes({
      fill: () => ({ log: ["a", "b", "c"] }),
      tidy: (state) => ({ log: overwrite(state.log.slice(-1)) }),
      beside: () => ({ log: ["d"] }),
    })
    .edges({ [START]: "fill", fill: ["tidy", "beside"], tidy: END, beside: END });
  expect((await run(tidy, {}).result).state.log).toEqual(["c", "d"]);
});

test("sent tasks send further tasks", async () => {
  const Folder = z.object({ folder: z.string(), files: z.array(z.string()) });
  const walk = defineGraph({ name: "walk", state: Log })
    .nodes({
      root: () => undefined,
      folder: inputNode(Folder, (_state, { input }) =>
        input.files.map((file) => send("file", `${input.folder}/${file}`)),
      ),
      file: inputNode(z.string(), (_state, { input }) => ({ log: [input] })),
    })
    .edges({
      [START]: "root",
      root: fanOut("folder", () => [
        { folder: "src", files: ["a", "b"] },
        { folder: "test", files: ["c"] },
      ]),
      folder: commandTargets("file"),
      file: END,
    });
  expect((await run(walk, {}).result).state.log).toEqual(["src/a", "src/b", "test/c"]);
});

test("a recorded step is not repeated when the node resumes", async () => {
  let drawn = 0;
  const draw = defineGraph({
    name: "draw",
    state: defineState({ winner: z.number().nullable().default(null) }),
    interrupts: { sure: z.boolean() },
  })
    .nodes({
      draw: async (_state, { step, interrupt }) => {
        const winner = await step("draw", () => ++drawn);
        expectTypeOf(winner).toEqualTypeOf<number>();
        return (await interrupt("sure")) ? { winner } : undefined;
      },
    })
    .edges({ [START]: "draw", draw: END });
  const store = memoryStore();
  await run(draw, { store, thread: "t" }).result;
  const { state } = await resume(draw, { store, thread: "t", answers: { sure: true } }).result;
  expect([state.winner, drawn]).toEqual([1, 1]);
});

test("channels may be named like fields of a command", async () => {
  const ship = defineGraph({ name: "ship", state: defineState({ target: z.string(), recipe: z.string().default("") }) })
    .nodes({ move: (state) => ({ target: `${state.target}!`, recipe: "soup" }) })
    .edges({ [START]: "move", move: END });
  expect((await run(ship, { input: { target: "Oslo" } }).result).state).toEqual({ target: "Oslo!", recipe: "soup" });
});

test("small programs need no cast, type argument or any", () => {
  const program = readFileSync(new URL(import.meta.url), "utf8").split('test("small programs need')[0] ?? "";
  const code = program.replace(/^import [^;]*;$/gm, "").replace(/"[^"]*"|`[^`]*`|\/\*\*.*\*\//g, "");
  expect(code.match(/\bas (?!const\b)\w+|\bany\b|\b(?!toEqualTypeOf)\w+<[^=]*?>\(/g)).toBe(null);
  expect(code.split(/^test\(/m).length - 1).toBeGreaterThanOrEqual(20);
});

test("channels, interrupts and a context of any JSON compile, and nodes read JSON [FX31]", async () => {
  const Record = defineState({
    any: z.json().default(null),
    byKey: z.record(z.string(), z.json()).default({}),
    object: z.custom<JsonObject>((value) => typeof value === "object").default({}),
    log: channel.list(z.json()),
  });
  const Settings = defineContext({ settings: z.json() });
  const graph = defineGraph({ name: "json", state: Record, context: Settings, interrupts: { ask: z.json() } })
    .nodes({
      read: (state, { context }) => {
        expectTypeOf(state.any).toEqualTypeOf<Json>();
        expectTypeOf(state.log).toEqualTypeOf<readonly Json[]>();
        expectTypeOf(context.settings).toEqualTypeOf<Json>();
        return { any: context.settings, byKey: { read: state.any }, object: { read: true }, log: [state.any] };
      },
    })
    .edges({ [START]: "read", read: END });
  const { state } = await run(graph, { context: { settings: { theme: ["dark"] } }, input: {} }).result;
  expect(state.any).toEqual({ theme: ["dark"] });
});

test("a context with lists takes readonly lists, and an inner graph gets it without a mapping [FX31]", async () => {
  const Team = defineContext({ roles: z.array(z.string()), limits: z.object({ days: z.array(z.number()) }) });
  const Count = defineState({ count: z.number().default(0) });
  const inner = defineGraph({ name: "inner", state: Count, context: Team })
    .nodes({ read: (_state, { context }) => ({ count: context.roles.length + context.limits.days.length }) })
    .edges({ [START]: "read", read: END });
  const outer = defineGraph({ name: "outer", state: Count, context: Team })
    .nodes({ read: subgraph(inner, { input: () => ({}), output: ({ count }) => ({ count }) }) })
    .edges({ [START]: "read", read: END });
  const roles: readonly string[] = ["editor"];
  const { state } = await run(outer, { context: { roles, limits: { days: [1, 2] } }, input: {} }).result;
  expect(state.count).toBe(3);
});

test("the injections of a state and of a context have the types of the selected parts [FX34]", () => {
  const Cart = defineState({ items: z.array(z.string()).default([]), messages: channel.messages() });
  const Visit = defineContext({ user: z.string() });
  const count = defineTool({
    name: "count",
    description: "Counts the items of the cart.",
    input: z.object({}),
    inject: {
      items: inject.state(Cart, (cart) => cart.items),
      user: inject.context(Visit, (visit) => visit.user),
    },
    run: (_args, { injected }) => {
      expectTypeOf(injected.items).toEqualTypeOf<readonly string[]>();
      expectTypeOf(injected.user).toEqualTypeOf<string>();
      return `${injected.items.length} of ${injected.user}`;
    },
  });
  expect(count.spec.inject).toEqual({ items: "state", user: "context" });
});
