/** The documented programs type-check without casts. Other tests run them; nothing here is called. */
import { call, say, scriptedModel } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { expect, expectTypeOf, test } from "vitest";
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import {
  channel,
  checkGraph,
  commandTargets,
  createAgent,
  decide,
  defineContext,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  durableMachine,
  END,
  edit,
  engine,
  env,
  fanOut,
  fork,
  getHistory,
  goto,
  inject,
  inputNode,
  type LanguageModel,
  type Model,
  recover,
  resume,
  route,
  run,
  START,
  type Store,
  sqliteStore,
  subgraph,
  type ToolResult,
  type Usage,
} from "../../src/index.ts";

declare function fetchWeather(
  city: string,
  options: { readonly signal: AbortSignal },
): Promise<{ readonly celsius: number }>;
declare const claude: LanguageModel;
declare const scripted: Model;
declare const store: Store;

const weather = defineTool({
  name: "get_weather",
  description: "Current weather for a city.",
  input: z.object({ city: z.string().describe("City name") }),
  effect: "pure",
  run: async ({ city }, { signal }) => fetchWeather(city, { signal }),
});

async function one() {
  const assistant = createAgent({ name: "assistant", model: claude, tools: [weather], store: sqliteStore("agent.db") });
  const handle = assistant.run({ thread: "t1", input: "Is it raining in Oslo?" });
  for await (const text of handle.text()) expectTypeOf(text).toEqualTypeOf<string>();
  const { status, state } = await handle.result;
  expectTypeOf(status).toEqualTypeOf<"done" | "waiting" | "paused" | "cancelled" | "queued" | "delivered">();
  expectTypeOf(state.messages[0]?.role).toEqualTypeOf<"system" | "user" | "assistant" | "tool" | undefined>();
  createAgent({ name: "offline", model: scripted });
  const named = { name: "named", model: claude, tools: [weather] } as const;
  createAgent({ ...named, allowedTools: ["get_weather"], toolChoice: { tool: "get_weather" } });
  // @ts-expect-error no tool has this name
  createAgent({ ...named, allowedTools: ["get_wether"] });
  // @ts-expect-error a step that must call no tool
  createAgent({ ...named, prepareStep: () => ({ model: "openai/gpt-5", toolChoice: { tool: "get_wether" } }) });
}

const Shop = defineContext({ customerId: z.string() });
const Orders = defineState({ cart: z.array(z.string()).default([]) });
declare const bank: {
  refund(
    key: { reveal(): string },
    customer: string,
    order: string,
    cents: number,
    options: { signal: AbortSignal; idempotencyKey: string },
  ): Promise<{ id: string }>;
};
const refund = defineTool({
  name: "refund",
  label: "Refund an order",
  description: "Return money for one order.",
  input: z.object({ orderId: z.string(), cents: z.int().positive() }),
  inject: {
    customer: Shop.from((shop) => shop.customerId),
    key: inject.secret("PAY_KEY"),
    cart: Orders.from((state) => state.cart),
  },
  effect: "idempotent",
  safety: { access: "write", network: ["pay.example"], spend: true, confirm: "policy" },
  retry: { attempts: 3, on: ["unavailable", "timeout"] },
  timeoutMs: 20_000,
  run: async ({ orderId, cents }, { injected, signal, progress, idempotencyKey }) => {
    progress("Asking the bank");
    const receipt = await bank.refund(injected.key, injected.customer, orderId, cents, { signal, idempotencyKey });
    return { content: `Refunded ${cents / 100} EUR`, details: receipt };
  },
});

function two() {
  const shop = createAgent({ name: "shop", model: scripted, context: Shop, state: Orders, tools: [refund] });
  shop.run({ thread: "t2", input: "Refund order 7", context: { customerId: "c1" }, secrets: env(["PAY_KEY"]) });
  // @ts-expect-error the context is missing
  shop.run({ thread: "t2", input: "Refund order 7" });
  // @ts-expect-error the context is of another type
  shop.run({ thread: "t2", input: "Refund order 7", context: { customerId: 1 } });
  // @ts-expect-error an agent without the context that a tool injects
  createAgent({ name: "shop", model: scripted, state: Orders, tools: [refund] });
  // @ts-expect-error an agent without the state that a tool injects
  createAgent({ name: "shop", model: scripted, context: Shop, tools: [refund] });
  return shop;
}

const Finding = z.object({ file: z.string(), severe: z.boolean() });
const Review = defineState({
  files: z.array(z.string()).default([]),
  findings: channel.list(Finding),
  verdict: z.enum(["ship", "fix"]).nullable().default(null),
});
declare function changedFiles(): Promise<string[]>;
declare function inspectFile(file: string): Promise<z.infer<typeof Finding>[]>;

function three() {
  return defineGraph({ name: "review", version: 1, state: Review })
    .nodes({
      collect: async () => ({ files: await changedFiles() }),
      inspect: inputNode(z.string(), async (_state, { input }) => ({ findings: await inspectFile(input) })),
      judge: (state) => ({ verdict: state.findings.some((finding) => finding.severe) ? "fix" : "ship" }),
      fix: (state) =>
        edit((draft) => {
          draft.files = state.findings.map((finding) => finding.file);
        }),
    })
    .edges({
      [START]: "collect",
      collect: fanOut("inspect", (state) => state.files, { otherwise: "judge" }),
      inspect: "judge",
      judge: route(["fix", END], (state) => (state.verdict === "fix" ? "fix" : END)),
      fix: "collect",
    });
}

const Pay = defineState({ amount: z.number(), note: z.string().optional() });

function payment() {
  return defineGraph({
    name: "payment",
    version: 1,
    state: Pay,
    interrupts: { approve: z.object({ ok: z.boolean(), note: z.string().optional() }) },
  })
    .nodes({
      approve: async (state, { interrupt }) => {
        const { ok, note } = await interrupt("approve", { payload: { amount: state.amount } });
        return ok ? goto("pay") : goto("decline", { note });
      },
      pay: () => undefined,
      decline: () => undefined,
    })
    .edges({ [START]: "approve", approve: commandTargets("pay", "decline"), pay: END, decline: END });
}

async function four() {
  const graph = payment();
  const first = await run(graph, { store, thread: "t7", input: { amount: 100 } }).result;
  if (first.status === "waiting")
    expectTypeOf<"approve">().toExtend<NonNullable<(typeof first.interrupts)[number]>["key"]>();
  await resume(graph, { store, thread: "t7", answers: { approve: { ok: true } } }).result;
  // @ts-expect-error the input is missing
  run(graph, { store, thread: "t7" });
  // @ts-expect-error an input of another type
  run(graph, { store, thread: "t7", input: { amount: "100" } });
  // @ts-expect-error an answer that the interrupt's schema refuses
  resume(graph, { store, thread: "t7", answers: { approve: { ok: "yes" } } });
  // @ts-expect-error resuming needs a store
  resume(graph, { thread: "t7" });
}

async function five() {
  const graph = payment();
  let at = 0;
  for await (const step of getHistory(graph, { store, thread: "t7" })) {
    expectTypeOf(step.node).toEqualTypeOf<"approve" | "pay" | "decline" | undefined>();
    if (step.node === "approve") at = step.checkpointId;
    // @ts-expect-error a node that the graph does not have
    if (step.node === "aprove") at = step.checkpointId;
  }
  const branch = await fork(graph, { store, thread: "t7", at, name: "cheaper", update: { amount: 80 } });
  await resume(graph, { store, thread: "t7", branch }).result;
  // @ts-expect-error an update of a channel that the state does not have
  fork(graph, { store, thread: "t7", at, name: "cheaper", update: { amonut: 80 } });
}

declare function meter(usage: Usage | undefined, elapsedMs: number): void;
declare function redact(result: ToolResult): ToolResult;

function six() {
  return defineMiddleware({
    name: "audit",
    beforeTool: ({ call, tool }) =>
      tool.safety.spend && refund.is(call) && call.args.cents > 10_000
        ? decide.interrupt(call, "large refund")
        : decide.allow(),
    aroundModel: async (request, next, { clock }) => {
      const started = clock.now();
      const reply = await next(request);
      meter(reply.usage, clock.now() - started);
      return reply;
    },
    afterTool: ({ result }) => redact(result),
  });
}

function seven() {
  const researcher = defineGraph({
    name: "researcher",
    state: defineState({ topic: z.string(), notes: channel.list(z.string()) }),
    interrupts: { scope: z.object({ wide: z.boolean() }) },
  })
    .nodes({ read: (state) => ({ notes: [state.topic] }) })
    .edges({ [START]: "read", read: END });
  return defineGraph({ name: "report", state: defineState({ question: z.string(), notes: channel.list(z.string()) }) })
    .nodes({
      research: subgraph(researcher, {
        input: (state) => ({ topic: state.question }),
        output: (result) => ({ notes: result.notes }),
      }),
    })
    .edges({ [START]: "research", research: END });
}

async function eight() {
  const shop = two();
  const t = await testRun(shop, {
    input: "refund order 7",
    context: { customerId: "c1" },
    model: scriptedModel([call("refund", { orderId: "7", cents: 900 }), say("Done")]),
    clock: "virtual",
  });
  await t.until("interrupted");
  expect(t).toBeInState("tools.interrupted");
  await t.crash();
  await t.resume({ approve: true });
  expect(t.trace).toPassThrough(["model", "tools.interrupted", "tools", "model", "done"]);
  expect(t.trace).toHaveCalledTools([{ name: "refund", args: { orderId: "7", cents: 900 } }]);
  expect(t.trace).toHaveRunOnce("refund");
  expect(checkGraph(shop)).toHaveNoViolations();
  expectTypeOf(t.state.cart).toEqualTypeOf<readonly string[]>();
  // @ts-expect-error a node that the agent does not have
  await t.until("tolls.interrupted");
  // @ts-expect-error an approval of another type
  await t.resume({ approve: "yes" });
  // @ts-expect-error a question that the agent does not ask
  await t.resume({ aprove: true });
}

declare const charge: (at: { readonly input: { readonly cents: number } }) => Promise<{ readonly receipt: string }>;
declare const ship: (at: { readonly input: { readonly receipt: string } }) => Promise<void>;

async function nine() {
  const machine = setup({
    types: { input: {} as { readonly orderId: string }, context: {} as { readonly receipt: string } },
    actors: { charge: fromPromise(charge), ship: fromPromise(ship) },
  }).createMachine({ id: "order", context: { receipt: "" }, output: () => ({ shipped: true }) });
  const graph = durableMachine(machine, { version: 1, effects: { charge: "once", ship: "idempotent" } });
  const { state } = await run(graph, { store, thread: "order-9", input: { orderId: "9" } }).result;
  expectTypeOf(state.context.receipt).toEqualTypeOf<string>();
  await fork(graph, { store, thread: "order-9", at: 1, name: "again", update: { context: { receipt: "r2" } } });
  durableMachine(machine, { version: 1 });
  // @ts-expect-error an actor that the machine does not have
  durableMachine(machine, { version: 1, effects: { chrage: "once" } });
  // @ts-expect-error no effect class
  durableMachine(machine, { version: 1, effects: { charge: "twice" } });
  // @ts-expect-error the version is asked for
  durableMachine(machine, {});
  // @ts-expect-error the machine needs its input
  run(graph, { store, thread: "order-9" });
  // @ts-expect-error and no other
  run(graph, { store, thread: "order-9", input: { order: "9" } });
  // @ts-expect-error a part that the context does not have
  fork(graph, { store, thread: "order-9", at: 1, name: "again", update: { context: { recipe: "r2" } } });
}

async function ten() {
  const host = engine({ store, graphs: [payment(), three(), two()], secrets: env(["PAY_KEY"]) });
  await host.start();
  await host.stop();
  for (const handle of await recover({ store, graphs: [payment()] })) expectTypeOf(handle.id).toBeString();
  return checkGraph(two());
}

test("the programs of the documentation type-check without casts", () => {
  for (const program of [one, two, three, four, five, six, seven, eight, nine, ten])
    expectTypeOf(program).toBeFunction();
});
