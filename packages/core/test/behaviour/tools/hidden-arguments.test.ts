import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { toModelTool } from "../../../src/adapter.ts";
import {
  decide,
  defineMiddleware,
  defineTool,
  env,
  inject,
  isStatewrightError,
  memoryStore,
  type RunIdentity,
  type SecretSource,
  type SecretValue,
  type ToolRuntime,
} from "../../../src/index.ts";
import { createCodec } from "../../../src/store.ts";
import {
  Chat,
  call,
  createToolLoop,
  Desk,
  getAnswerText,
  type Loop,
  listEvents,
  listResults,
  listToolAnswers,
  runToolLoop,
} from "../../support/tool-loop.ts";

const vault: SecretSource = { get: (name) => (name === "PAY_KEY" ? "SENTINEL-secret" : undefined) };

/** All output of a run: requests, commits, events and log. */
function collectOutput(loop: Pick<Loop, "wires" | "saved" | "events" | "world">): string {
  return [
    ...loop.wires,
    loop.saved(),
    JSON.stringify(loop.events),
    inspect(loop.events, { depth: 20 }),
    inspect(loop.world.lines, { depth: 20 }),
  ].join("\n");
}

test("context, state, secrets and clients reach the tool and nothing else, and a forged hidden name is stripped [S1.38, S1.39, S1.46, S1.47]", async () => {
  const seen: unknown[] = [];
  const pay = defineTool({
    name: "pay",
    description: "Pay an order.",
    input: z.object({ cents: z.int(), note: z.string().default("none").describe("A note") }),
    inject: {
      customerHidden: Desk.from((desk) => desk.customer),
      clientHidden: Desk.from((desk) => desk.client),
      keyHidden: inject.secret("PAY_KEY"),
      cartHidden: Chat.from((chat) => chat.cart),
    },
    effect: "idempotent",
    run: (args, { injected }) => {
      seen.push({
        args,
        customer: injected.customerHidden,
        key: injected.keyHidden.reveal(),
        client: injected.clientHidden?.key,
        cart: injected.cartHidden,
      });
      return "paid";
    },
  });
  const done = await runToolLoop({
    tools: [pay],
    context: { customer: "SENTINEL-customer", client: { key: "SENTINEL-client" } },
    secrets: vault,
    turns: [
      [
        call("pay", { cents: 5 }, "a"),
        call("pay", { cents: 6, keyHidden: "forged-key", customerHidden: "forged-customer" }, "b"),
        call("pay", { cents: "x", keyHidden: "forged-key" }, "c"),
      ],
      ["ok"],
    ],
  });
  const real = { customer: "SENTINEL-customer", key: "SENTINEL-secret", client: "SENTINEL-client", cart: [] };
  expect(seen).toEqual([
    { args: { cents: 5, note: "none" }, ...real },
    { args: { cents: 6, note: "none" }, ...real },
  ]);
  expect(collectOutput(done)).not.toContain("SENTINEL");
  expect(
    Object.keys(
      (JSON.parse(done.wires[0] ?? "").tools[0] as { inputSchema: { properties: object } }).inputSchema.properties,
    ),
  ).toEqual(["cents", "note"]);
  expect(JSON.stringify(toModelTool(pay.spec))).not.toContain("Hidden");
  expect(JSON.parse(done.wires[0] ?? "").tools).toEqual([toModelTool(pay.spec)]);
  expect(listEvents(done, "tool.forged_arg_stripped").map(({ callId, keys }) => [callId, keys])).toEqual([
    ["b", ["keyHidden", "customerHidden"]],
    ["c", ["keyHidden"]],
  ]);
  expect(getAnswerText(listToolAnswers(done)[2])).not.toContain("Hidden");
  for (const result of listResults(done)) expect(JSON.stringify(result)).not.toMatch(/Hidden|forged/);
  for (const event of listEvents(done, "tool.started")) expect(JSON.stringify(event.args)).not.toMatch(/Hidden|forged/);
});

test("run ids, state, emitter, stream writers and the abort signal reach the tool and not the model [S1.40, S1.41, S1.43, S1.44, S1.45]", async () => {
  let got: ToolRuntime<unknown, { readonly cart: readonly string[]; readonly identity: RunIdentity }> | undefined;
  const look = defineTool({
    name: "look",
    description: "Look around.",
    input: z.object({}),
    inject: { cart: Chat.from((chat) => chat.cart), identity: inject.run() },
    run: (_args, runtime) => {
      got = runtime;
      runtime.emit("looked", { at: "the cart" });
      runtime.progress("looking");
      runtime.update?.({ content: "half" });
      return "seen";
    },
  });
  const done = await runToolLoop({ tools: [look], turns: [[call("look")], ["ok"]] });
  expect(got?.run).toMatchObject({ thread: "t", run: done.result.run, node: "tools" });
  expect(got?.injected.cart).toEqual([]);
  expect(got?.injected.identity).toEqual(got?.run);
  expect(got?.signal).toBeInstanceOf(AbortSignal);
  expect(listEvents(done, "custom", "tool.progress", "tool.update").map(({ type }) => type)).toEqual([
    "custom",
    "tool.progress",
    "tool.update",
  ]);
  for (const wire of done.wires) {
    expect(wire).not.toContain(done.result.run);
    for (const word of ["thread", "cart", "identity", "emit", "looked", "looking", "half", "signal", "progress"])
      expect(wire).not.toContain(word);
  }
});

test("a secret passed to a tool prints, serializes and clones without its value", async () => {
  const shapes: string[] = [];
  const tool = defineTool({
    name: "look",
    description: "Look at a secret.",
    input: z.object({}),
    inject: { key: inject.secret("PAY_KEY") },
    run: (_args, runtime) => {
      const { key } = runtime.injected;
      shapes.push(
        JSON.stringify(key) ?? "undefined",
        JSON.stringify({ key }),
        inspect(key, { showHidden: true, depth: 9 }),
        inspect(runtime, { depth: 9 }),
        `${key}`,
        "" + key,
        String(key),
        JSON.stringify(structuredClone(copyable(key))),
        JSON.stringify({ ...key }),
        JSON.stringify(Object.entries(key)),
        [key, key].join(),
      );
      for (const attempt of [() => createCodec().encode({ key }, "it")]) {
        try {
          shapes.push(attempt());
        } catch (error) {
          shapes.push(String(error), inspect(error));
        }
      }
      return { content: "looked", details: { plain: "yes" } };
    },
  });
  const done = await runToolLoop({ tools: [tool], secrets: vault, turns: [[call("look")], ["ok"]] });
  expect(done.result.status).toBe("done");
  expect(shapes).toHaveLength(12 + 1);
  for (const shape of shapes) expect(shape).not.toContain("SENTINEL");
});

test("a secret object that a tool puts into its result, details or an update is neither saved nor shown", async () => {
  for (const where of ["content", "value", "details", "update"] as const) {
    const tool = defineTool({
      name: "leak",
      description: "Careless.",
      input: z.object({}),
      inject: { key: inject.secret("PAY_KEY") },
      run: (_args, { injected: { key }, update }) => {
        if (where === "content") return { key };
        if (where === "update") update?.({ content: "x", details: { key } });
        return where === "value"
          ? { content: "x", value: { key } }
          : where === "details"
            ? { content: "x", details: { key } }
            : "x";
      },
    });
    const done = await runToolLoop({ tools: [tool], secrets: vault, turns: [[call("leak")], ["ok"]] });
    expect(done.result.status).toBe("done");
    expect(collectOutput(done)).not.toContain("SENTINEL");
  }
});

describe("missing secret", () => {
  function paying(): { readonly pay: ReturnType<typeof tool>; readonly ran: string[] } {
    const ran: string[] = [];
    const tool = () =>
      defineTool({
        name: "pay",
        description: "Pay.",
        input: z.object({}),
        inject: { key: inject.secret("PAY_KEY") },
        run: () => void ran.push("paid"),
      });
    return { pay: tool(), ran };
  }

  test("a missing secret fails the run before the tool call starts, and a resume with the secret runs the call", async () => {
    const { pay, ran } = paying();
    const loop = createToolLoop({ tools: [pay], turns: [[call("pay")], ["ok"]] });
    const error = await loop.start().result.catch((thrown: unknown) => thrown);
    expect(isStatewrightError(error, "missing_secret")).toBe(true);
    expect(ran).toEqual([]);
    const end = await loop.again({}, { secrets: vault }).result;
    expect(end.status).toBe("done");
    expect(ran).toEqual(["paid"]);
  });

  test("the error of a failing secret source is reported to the operator and not to the model", async () => {
    const { pay } = paying();
    const loop = createToolLoop({
      tools: [pay],
      turns: [[call("pay")], ["ok"]],
      secrets: { get: () => Promise.reject(new Error("vault SENTINEL is sealed")) },
    });
    const error = await loop.start().result.catch((thrown: unknown) => thrown);
    expect(String(error)).toContain("sealed");
    expect(loop.wires.join()).not.toContain("SENTINEL");
    expect((await loop.again({}, { secrets: vault }).result).status).toBe("done");
  });
});

test("env() gives the named variables and no others", async () => {
  process.env["STATEWRIGHT_TEST_A"] = "a";
  process.env["STATEWRIGHT_TEST_B"] = "b";
  const source = env(["STATEWRIGHT_TEST_A", "STATEWRIGHT_TEST_NONE"]);
  expect(await source.get("STATEWRIGHT_TEST_A")).toBe("a");
  expect(await source.get("STATEWRIGHT_TEST_B")).toBeUndefined();
  expect(await source.get("STATEWRIGHT_TEST_NONE")).toBeUndefined();
});

test("a hidden name that a hook or a person adds to the arguments is stripped", async () => {
  const seen: unknown[] = [];
  const tool = defineTool({
    name: "pay",
    description: "Pay.",
    input: z.object({ cents: z.int() }),
    inject: { customer: Desk.from((desk) => desk.customer) },
    run: (args, { injected }) => void seen.push([args, injected.customer]),
  });
  const meddle = defineMiddleware({
    name: "meddle",
    beforeTool: () => decide.modify({ cents: 2, customer: "forged" }),
  });
  const ask = defineMiddleware({ name: "ask", beforeTool: ({ call }) => decide.interrupt(call, "sure?") });
  const first = await runToolLoop({
    tools: [tool],
    middleware: [meddle],
    context: { customer: "real" },
    turns: [[call("pay", { cents: 1 })], ["ok"]],
  });
  expect(first.result.status).toBe("done");
  const loop = createToolLoop({
    tools: [tool],
    middleware: [ask],
    context: { customer: "real" },
    turns: [[call("pay", { cents: 1 })], ["ok"]],
  });
  await loop.start().result;
  await loop.again({ approve: { approved: true, args: { cents: 3, customer: "forged" } } }).result;
  expect(seen).toEqual([
    [{ cents: 2 }, "real"],
    [{ cents: 3 }, "real"],
  ]);
});

test("result details never reach the model, appear once in the end event and are kept in the stored result [S0.15, S2.15]", async () => {
  const store = memoryStore();
  const tool = defineTool({
    name: "act",
    description: "Acts.",
    input: z.object({}),
    run: () => ({ content: "done", details: { note: "SENTINEL-details" } }),
  });
  const done = await runToolLoop({ tools: [tool], store, turns: [[call("act")], ["one more"]] });
  expect(done.wires.join()).not.toContain("SENTINEL");
  expect(JSON.stringify(done.result.state)).not.toContain("SENTINEL");
  expect(done.events.filter((event) => JSON.stringify(event).includes("SENTINEL")).map(({ type }) => type)).toEqual([
    "tool.completed",
  ]);
  const rows = await store.effects("t", "main");
  expect(rows.filter(({ outcome }) => outcome?.includes("SENTINEL")).map(({ kind, name }) => [kind, name])).toEqual([
    ["tool", "act"],
  ]);
});

test("a forged hidden name is removed with an event before the arguments are parsed, and another unknown name is refused by name [T14]", async () => {
  const seen: unknown[] = [];
  const tool = defineTool({
    name: "pay",
    description: "Pay.",
    input: z.object({ cents: z.int() }),
    inject: { customer: Desk.from((desk) => desk.customer) },
    run: (args, { injected }) => void seen.push([args, injected.customer]),
  });
  const done = await runToolLoop({
    tools: [tool],
    context: { customer: "real" },
    turns: [
      [
        call("pay", { cents: 1, customer: "forged" }, "a"),
        call("pay", { cents: 2, extra: 1 }, "b"),
        call("pay", { cents: 3, extra: 1, customer: "forged" }, "c"),
      ],
      ["ok"],
    ],
  });
  expect(seen).toEqual([[{ cents: 1 }, "real"]]);
  expect(listEvents(done, "tool.forged_arg_stripped").map(({ callId, keys }) => [callId, keys])).toEqual([
    ["a", ["customer"]],
    ["c", ["customer"]],
  ]);
  for (const answer of listToolAnswers(done).slice(1))
    expect(getAnswerText(answer)).toContain("extra: unknown argument");
});

test("injected values appear in no checkpoint, start event, error cause or schema issue [T20]", async () => {
  const injections = {
    customer: Desk.from((desk) => desk.customer),
    client: Desk.from((desk) => desk.client),
    key: inject.secret("PAY_KEY"),
  };
  const act = defineTool({
    name: "act",
    description: "Act.",
    input: z.object({ how: z.enum(["throw", "late", "output", "fine"]) }),
    output: z.object({ n: z.number() }),
    inject: injections,
    effect: "pure",
    timeoutMs: 50,
    run: ({ how }, { injected }) => {
      if (injected.key.reveal() !== "SENTINEL-secret") throw new Error("no secret");
      if (how === "throw") throw new Error("the bank refused", { cause: new Error("the reason") });
      if (how === "late") return new Promise<never>(() => undefined);
      return { content: "x", value: how === "output" ? ({ n: "x" } as never) : { n: 1 } };
    },
  });
  const strict = defineMiddleware({
    name: "strict",
    required: true,
    afterTool: ({ result }) => {
      if (!result.isError) throw new Error("the audit is closed", { cause: result });
      return undefined;
    },
  });
  const turns = [
    [
      call("act", { how: "throw" }, "a"),
      call("act", { how: "late" }, "b"),
      call("act", { how: "output" }, "c"),
      call("act", { how: "SENTINEL-model" }, "d"),
      call("act", { how: "fine" }, "e"),
    ],
    ["ok"],
  ] as const;
  const loop = createToolLoop({
    tools: [act],
    middleware: [strict],
    context: { customer: "SENTINEL-customer", client: { key: "SENTINEL-client" } },
    secrets: vault,
    turns,
  });
  const failure = loop.start().result.catch((error: unknown) => error);
  await loop.world.advance(10_000);
  const error = await failure;
  expect(isStatewrightError(error, "node_failed")).toBe(true);
  const observed = [
    inspect(error, { depth: 20, showHidden: true }),
    JSON.stringify(error),
    loop.saved(),
    JSON.stringify(loop.events),
    inspect(loop.world.lines, { depth: 20 }),
  ].join("\n");
  expect(observed).not.toMatch(/SENTINEL-(?!model)/);
  expect(
    listResults(loop)
      .map(({ error: said }) => said?.kind)
      .sort(),
  ).toEqual(["failed", "invalid_args", "invalid_output", "timeout"]);
  for (const result of listResults(loop)) expect(JSON.stringify(result)).not.toContain("SENTINEL");
  expect(listEvents(loop, "tool.started").map(({ args }) => Object.keys(args as object))).toEqual([
    ["how"],
    ["how"],
    ["how"],
    ["how"],
  ]);
});

test("label and safety metadata of a tool appear in no model request [T22]", async () => {
  const tool = defineTool({
    name: "act",
    label: "SENTINEL-label",
    description: "Acts.",
    input: z.object({}),
    safety: { access: "destructive", network: ["SENTINEL-host"], roots: ["/SENTINEL-root"] },
    run: () => "done",
  });
  const done = await runToolLoop({ tools: [tool], turns: [[call("act")], ["ok"]] });
  expect(done.wires.join()).not.toContain("SENTINEL");
  expect(done.wires.join()).not.toContain("destructive");
  expect(tool.spec.label).toBe("SENTINEL-label");
});

/** structuredClone on the key object itself; the functions of the key are not part of the clone. */
function copyable(key: SecretValue): SecretValue {
  return structuredClone(key);
}
