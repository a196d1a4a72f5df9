import { expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  env,
  goto,
  gotos,
  list,
  messages,
  route,
  run,
  START,
  secret,
  sends,
  task,
  toolNode,
  update,
} from "../../src/index.ts";

const Finding = z.object({ file: z.string(), severe: z.boolean() });
declare function changedFiles(): Promise<string[]>;
declare function inspectFile(file: string): Promise<z.infer<typeof Finding>[]>;

const Review = defineState({
  files: z.array(z.string()).default([]),
  findings: list(Finding),
  verdict: z.enum(["ship", "fix"]).nullable().default(null),
});

function programThree() {
  return defineGraph({ name: "review", version: 1, state: Review })
    .nodes({
      collect: async () => ({ files: await changedFiles() }),
      inspect: task(z.string(), async (_state, { input }) => ({ findings: await inspectFile(input) })),
      judge: (state) => ({ verdict: state.findings.some((f) => f.severe) ? "fix" : "ship" }),
      fix: (state) =>
        update((draft) => {
          draft.files = state.findings.map((f) => f.file);
        }),
    })
    .edges({
      [START]: "collect",
      collect: sends("inspect", (state) => state.files, { otherwise: "judge" }),
      inspect: "judge",
      judge: route(["fix", END], (state) => (state.verdict === "fix" ? "fix" : END)),
      fix: "collect",
    });
}

const Pay = defineState({ amount: z.number(), note: z.string().optional() });

function programFour() {
  return defineGraph({
    name: "payment",
    version: 1,
    state: Pay,
    interrupts: { approve: z.object({ ok: z.boolean(), note: z.string().optional() }) },
  })
    .nodes({
      approve: async (state, { interrupt }) => {
        const { ok, note } = await interrupt("approve", { payload: { amount: state.amount } });
        expectTypeOf(ok).toEqualTypeOf<boolean>();
        return ok ? goto("pay") : goto("decline", { note });
      },
      pay: () => undefined,
      decline: () => undefined,
    })
    .edges({ [START]: "approve", approve: gotos("pay", "decline"), pay: END, decline: END });
}

const Shop = defineContext({ customerId: z.string() });
const Orders = defineState({ cart: z.array(z.string()).default([]), messages: messages() });
const refund = defineTool({
  name: "refund",
  label: "Refund an order",
  description: "Return money for one order.",
  input: z.object({ orderId: z.string(), cents: z.int().positive() }),
  inject: {
    customer: Shop.from((shop) => shop.customerId),
    key: secret("PAY_KEY"),
    cart: Orders.from((state) => state.cart),
  },
  effect: "idempotent",
  safety: { access: "write", network: ["pay.example"], spend: true, confirm: "policy" },
  retry: { attempts: 3, on: ["unavailable", "timeout"] },
  timeoutMs: 20_000,
  run: async ({ orderId, cents }, { injected, progress }) => {
    progress("Asking the bank");
    expectTypeOf(injected.customer).toEqualTypeOf<string>();
    expectTypeOf(injected.cart).toEqualTypeOf<readonly string[]>();
    expectTypeOf(injected.key.reveal()).toEqualTypeOf<string>();
    return { content: `Refunded ${cents / 100} EUR for ${orderId}`, details: { cents } };
  },
});

function toolGraph() {
  return defineGraph({ name: "shop", state: Orders, context: Shop })
    .nodes({ tools: toolNode({ tools: [refund] }) })
    .edges({ [START]: "tools", tools: END });
}

function wrongPrograms() {
  const start = defineGraph({ name: "wrong", state: Review });
  // @ts-expect-error a node returns a channel that the state does not have
  start.nodes({ a: () => ({ findigs: [] }) });
  // @ts-expect-error a node returns a wrong value
  start.nodes({ a: () => ({ files: 3 }) });
  start.nodes({
    a: (state) => {
      // @ts-expect-error a node writes to its state
      state.files.push("x");
    },
  });
  const two = start.nodes({ a: () => undefined, b: task(z.string(), (_state, { input }) => ({ files: [input] })) });
  // @ts-expect-error an unknown target
  two.edges({ [START]: "c", a: END });
  // @ts-expect-error a task node without an input
  two.edges({ [START]: "b", a: END });
  // @ts-expect-error sends give the wrong input
  two.edges({ [START]: "a", a: sends("b", (state) => state.findings), b: END });
  // @ts-expect-error a route returns what it does not declare
  two.edges({ [START]: "a", a: route([END], () => "b"), b: END });
  // @ts-expect-error no edge leaves START
  two.edges({ a: END });
  const commanding = start.nodes({ a: () => goto("b"), b: () => undefined });
  // @ts-expect-error a goto without gotos
  commanding.edges({ [START]: "a", a: "b", b: END });
  // @ts-expect-error a goto that the edge does not list
  commanding.edges({ [START]: "a", a: gotos("a"), b: END });
  // @ts-expect-error a graph without the context that a tool injects
  defineGraph({ name: "wrong", state: Orders }).nodes({ tools: toolNode({ tools: [refund] }) });
  const cartless = defineGraph({ name: "wrong", state: defineState({ messages: messages() }), context: Shop });
  // @ts-expect-error a graph without the state that a tool injects
  cartless.nodes({ tools: toolNode({ tools: [refund] }) });
  const policies = start.nodes({ a: { run: (state) => ({ files: [...state.files] }), retry: { attempts: 2 } } });
  // @ts-expect-error an unknown target after a node with a policy
  policies.edges({ [START]: "a", a: "b" });
  const whole = policies.edges({ [START]: "a", a: END });
  // @ts-expect-error a number is no input, even where every channel has a default
  run(whole, { input: 7 });
}

test("the programs of the documentation type-check without casts", () => {
  expectTypeOf(programThree).toBeFunction();
  expectTypeOf(programFour).toBeFunction();
  expectTypeOf(toolGraph).toBeFunction();
  expectTypeOf(wrongPrograms).toBeFunction();
  expectTypeOf(env).toBeFunction();
});
