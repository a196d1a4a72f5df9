import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineContext,
  defineGraph,
  defineState,
  END,
  type GraphProblem,
  memoryStore,
  resume,
  run,
  START,
} from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const S = defineState({ amount: z.number(), tags: z.array(z.string()).default([]), log: channel.list(z.string()) });
const graph = defineGraph({ name: "input", state: S })
  .nodes({ a: (state) => ({ log: [`${state.amount}`] }) })
  .edges({ [START]: "a", a: END });

test("a run with a thread and without a store is warned about once for each graph [FX18]", async () => {
  const world = createVirtualWorld();
  const make = (name: string) =>
    defineGraph({ name, state: S })
      .nodes({ a: () => undefined })
      .edges({ [START]: "a", a: END });
  const [one, two] = [make("one"), make("two")];
  const input = { amount: 1 };
  await run(one, { world, input }).result;
  await run(one, { world, input, thread: "t", store: memoryStore() }).result;
  expect(world.lines).toEqual([]);
  await run(one, { world, input, thread: "t" }).result;
  await run(one, { world, input, thread: "t" }).result;
  await run(two, { world, input, thread: "t" }).result;
  expect(world.lines.map(({ level, fields }) => [level, fields])).toEqual([
    ["warn", { graph: "one", thread: "t" }],
    ["warn", { graph: "two", thread: "t" }],
  ]);
  expect(world.lines[0]?.message).toContain("without its state");
});

test("a run with a thread, without a store and without a log, warns on the console [FX18]", async () => {
  const unsaved = defineGraph({ name: "unsaved", state: S })
    .nodes({ a: () => undefined })
    .edges({ [START]: "a", a: END });
  const lines: string[] = [];
  const { warn } = console;
  console.warn = (line: string) => void lines.push(line);
  await run(unsaved, { input: { amount: 1 }, thread: "t" }).result;
  console.warn = warn;
  expect(lines).toEqual([
    expect.stringMatching(/^statewright: a run has a thread and no store: .+ \(graph "unsaved", thread "t"\)$/),
  ]);
});

describe("run input", () => {
  test.each([
    ["of another type", { amount: "5" }, { channel: "amount" }],
    ["wrong deep inside", { amount: 1, tags: ["a", 7] }, { channel: "tags", path: "1" }],
    ["with an unknown channel", { amount: 1, amuont: 2 }, { channel: "amuont" }],
    ["that is a list", [1], {}],
  ])("an input %s is refused with its path before a write to the store", async (_name, input, place) => {
    const store = memoryStore();
    const error = await getFailure(run(graph, { store, thread: "t", input: input as never }).result, "invalid_input");
    expect(error.kind).toBe("input");
    expect(error.place).toMatchObject({ graph: "input", ...place });
    expect(await store.threads()).toEqual([]);
  });

  test("the text input of a graph with messages is refused with its value and a reference to toInput", async () => {
    const chat = defineGraph({ name: "chat", state: defineState({ messages: channel.messages() }) })
      .nodes({ a: () => undefined })
      .edges({ [START]: "a", a: END });
    const error = await getFailure(run(chat, { input: "hello" as never }).result, "invalid_input");
    expect(error.message).toContain('expected an object of channels, got "hello"');
    expect(error.message).toContain("agent.toInput(text)");
  });

  test("a required channel missing from the input is a type error, and a run-time error that names the channel [E64]", async () => {
    const store = memoryStore();
    // @ts-expect-error the amount is missing
    const error = await getFailure(run(graph, { store, thread: "t", input: {} }).result, "invalid_input");
    expect(error.message).toContain('lacks "amount"');
    expect(await store.head("t")).toBeUndefined();
    await run(graph, { store, thread: "t", input: { amount: 5 } }).result;
    // @ts-expect-error the type requires an input: the content of the thread is unknown at compile time
    const { state } = await run(graph, { store, thread: "t" }).result;
    expect(state).toEqual({ amount: 5, tags: [], log: ["5", "5"] });
  });

  describe("input schema that leaves a channel unset", () => {
    const Names = defineState({ first: z.string(), last: z.string(), title: z.string().default("") });
    const listProblems = async (schema: z.ZodType<object>) => {
      const declare = () =>
        defineGraph({ name: "names", state: Names, input: schema })
          .nodes({ a: () => undefined })
          .edges({ [START]: "a", a: END });
      const failure = await getFailure(declare, "invalid_graph");
      return (failure.details as readonly GraphProblem[]).map(
        ({ code, message }) => `${code}: ${message.split(",")[0]}`,
      );
    };
    const first = z.object({ first: z.string() });
    const never = 'missing_input: the input schema excludes "last"';

    test.each<[string, z.ZodType<object>]>([
      ["leaves it out", first],
      ["leaves it out in every variant", z.union([first, first.extend({ title: z.string() })])],
      ["drops it", z.preprocess((given) => given, first)],
    ])("an input schema that %s is refused for a required channel [E64]", async (_name, schema) => {
      expect(await listProblems(schema)).toEqual([never]);
    });

    test("an input schema with an unknown channel is a definition error [E64]", async () => {
      expect(await listProblems(z.object({ first: z.string(), last: z.string(), lst: z.string() }))).toEqual([
        'unknown_channel: the input schema has "lst"',
      ]);
    });

    test.each<[string, z.ZodType<object>]>([
      ["gives it", z.object({ first: z.string(), last: z.string() })],
      ["makes it", first.transform(({ first: name }) => ({ first: name, last: name }))],
      ["lets it through", z.looseObject({ first: z.string() })],
      ["may give it, for a thread that has it already", z.object({ first: z.string(), last: z.string().optional() })],
      ["gives it by half of an intersection", first.and(z.object({ last: z.string() }))],
    ])("an input schema that %s is taken", (_name, schema) => {
      const named = defineGraph({ name: "names", state: Names, input: schema })
        .nodes({ a: () => undefined })
        .edges({ [START]: "a", a: END });
      expect(named.name).toBe("names");
    });

    test("a required private channel is a definition error, and channels that may be unset are typed as optional [E64]", async () => {
      const hidden = defineGraph({ name: "names", state: Names, private: ["last"] }).nodes({ a: () => undefined });
      const failure = await getFailure(() => hidden.edges({ [START]: "a", a: END }), "invalid_graph");
      expect(failure.details).toMatchObject([{ code: "private_input" }]);
      const Passing = defineState({
        flash: channel.ephemeral(z.string()),
        client: channel.untracked(z.string()),
        kept: z.string(),
      });
      defineGraph({ name: "passing", state: Passing }).nodes({
        a: (state) => {
          expectTypeOf(state.flash).toEqualTypeOf<string | undefined>();
          expectTypeOf(state.client).toEqualTypeOf<string | undefined>();
          expectTypeOf(state.kept).toEqualTypeOf<string>();
        },
      });
    });
  });

  test("an input without a required channel creates no thread, and is accepted on a thread that has the channel", async () => {
    const store = memoryStore();
    // @ts-expect-error the amount is missing
    const error = await getFailure(run(graph, { store, thread: "t", input: {} }).result, "invalid_input");
    expect(error.message).toContain('lacks "amount"');
    expect(await store.threads()).toEqual([]);
    await run(graph, { store, thread: "t", input: { amount: 1 } }).result;
    // @ts-expect-error a first run would need the amount
    expect((await run(graph, { store, thread: "t", input: {} }).result).state.log).toEqual(["1", "1"]);
    // @ts-expect-error a new branch has no amount either
    await getFailure(run(graph, { store, thread: "t", branch: "other", input: {} }).result, "invalid_input");
    expect((await store.branches("t")).map(({ name }) => name)).toEqual(["main"]);
  });

  test("a new input on a finished thread is folded into its state", async () => {
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: { amount: 1, tags: ["a"], log: ["in"] } }).result;
    const { state } = await run(graph, { store, thread: "t", input: { amount: 2, log: ["again"] } }).result;
    expect(state).toEqual({ amount: 2, tags: ["a"], log: ["in", "1", "again", "2"] });
  });

  test("a run on a thread written by another graph is refused", async () => {
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: { amount: 1 } }).result;
    const other = defineGraph({ name: "other", state: S })
      .nodes({ a: () => undefined })
      .edges({ [START]: "a", a: END });
    expect(
      (await getFailure(run(other, { store, thread: "t", input: { amount: 1 } }).result, "graph_changed")).message,
    ).toContain('"input"');
    expect((await run(graph, { store, thread: "t", input: { amount: 2 } }).result).status).toBe("done");
  });

  test("an invalid thread or branch id is refused at once", async () => {
    await getFailure(() => run(graph, { thread: "a b", input: { amount: 1 } }), "invalid_id");
    await getFailure(
      run(graph, { store: memoryStore(), thread: "t", branch: "a/b", input: { amount: 1 } }).result,
      "invalid_id",
    );
  });
});

describe("context", () => {
  test("a context that is not an object of schemas is refused at definition", async () => {
    const whole = await getFailure(() => defineContext(z.object({ tenant: z.string() }) as never), "invalid_option");
    expect(whole.message).toContain("without z.object around the values");
    const part = await getFailure(() => defineContext({ tenant: 7 } as never), "invalid_option");
    expect(part.message).toContain("`tenant` must be a schema, got 7");
  });

  const Shop = defineContext({
    customer: z.string().transform((name) => name.toUpperCase()),
    token: z.string().default("none"),
  });
  const seen: unknown[] = [];
  const shop = defineGraph({
    name: "shop",
    state: defineState({ log: channel.list(z.string()) }),
    context: Shop,
    interrupts: { go: z.boolean() },
  })
    .nodes({
      a: async (_state, { context, interrupt }) => {
        expectTypeOf(context).toEqualTypeOf<{ readonly customer: string; readonly token: string }>();
        seen.push(context);
        await interrupt("go");
        return { log: [context.customer] };
      },
    })
    .edges({ [START]: "a", a: END });

  test("context is typed, passed per run, parsed on start and on resume, and never saved [E60]", async () => {
    const store = memoryStore();
    await run(shop, { store, thread: "t", context: { customer: "SENTINEL", token: "TOKEN" } }).result;
    // @ts-expect-error a resume needs the context too
    await getFailure(resume(shop, { store, thread: "t", answers: { go: true } }).result, "invalid_context");
    const { state } = await resume(shop, { store, thread: "t", answers: { go: true }, context: { customer: "bob" } })
      .result;
    expect(state.log).toEqual(["BOB"]);
    expect(seen).toEqual([
      { customer: "SENTINEL", token: "TOKEN" },
      { customer: "BOB", token: "none" },
    ]);
    const saved = [
      await store.history("t", { limit: 100 }),
      await store.effects("t", "main"),
      await store.interrupts("t", "main"),
      await store.runs(),
      await store.threads(),
    ];
    expect(JSON.stringify(saved)).not.toMatch(/SENTINEL|TOKEN|bob/);
  });

  test("an invalid context is refused with its path before a write to the store [E60]", async () => {
    const store = memoryStore();
    const error = await getFailure(
      run(shop, { store, thread: "t", context: { customer: 7 as never } }).result,
      "invalid_context",
    );
    expect(error.message).toContain("customer: ");
    expect(await store.threads()).toEqual([]);
    // @ts-expect-error the context is missing
    const missing = await getFailure(run(shop, { store, thread: "t" }).result, "invalid_context");
    expect(missing.message).toContain("customer: ");
  });

  test("a context whose values all have defaults may be left out of a run and of a resume [E60]", async () => {
    const store = memoryStore();
    const asking = defineGraph({
      name: "asking",
      state: defineState({ log: channel.list(z.string()) }),
      context: defineContext({ loops: z.int().default(3), note: z.string().optional() }),
      interrupts: { go: z.boolean() },
    })
      .nodes({
        a: async (_state, { context, interrupt }) => {
          await interrupt("go");
          return { log: [`${context.loops} loops`] };
        },
      })
      .edges({ [START]: "a", a: END });
    await run(asking, { store, thread: "t" }).result;
    const { state } = await resume(asking, { store, thread: "t", answers: { go: true } }).result;
    expect(state.log).toEqual(["3 loops"]);
    const other = await run(asking, { store, thread: "u", context: { loops: 1 } }).result;
    expect(other.status).toBe("waiting");
    // @ts-expect-error the value of the context is no number
    await getFailure(run(asking, { store, thread: "v", context: { loops: "one" } }).result, "invalid_context");
  });
});
