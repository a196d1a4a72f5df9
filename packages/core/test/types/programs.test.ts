import { expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  type ContextOf,
  channel,
  commandTargets,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  edit,
  env,
  fanOut,
  goto,
  inject,
  inputNode,
  route,
  START,
  type StateOf,
  toolNode,
  type UpdateOf,
} from "../../src/index.ts";

const Finding = z.object({ file: z.string(), severe: z.boolean() });
declare function changedFiles(): Promise<string[]>;
declare function inspectFile(file: string): Promise<z.infer<typeof Finding>[]>;

const Review = defineState({
  files: z.array(z.string()).default([]),
  findings: channel.list(Finding),
  verdict: z.enum(["ship", "fix"]).nullable().default(null),
});

test("the types of a state and of a context are named by their definitions", () => {
  type State = StateOf<typeof Review>;
  expectTypeOf<State["findings"]>().toEqualTypeOf<readonly { readonly file: string; readonly severe: boolean }[]>();
  expectTypeOf<State["verdict"]>().toEqualTypeOf<"ship" | "fix" | null>();
  expectTypeOf<StateOf<(typeof Review)["channels"]>>().toEqualTypeOf<State>();
  expectTypeOf<{ verdict: "ship" }>().toExtend<UpdateOf<typeof Review>>();
  const Desk = defineContext({ user: z.string(), loops: z.int().default(3) });
  expectTypeOf<ContextOf<typeof Desk>>().toEqualTypeOf<{ readonly user: string; readonly loops: number }>();
});

function programThree() {
  return defineGraph({ name: "review", version: 1, state: Review })
    .nodes({
      collect: async () => ({ files: await changedFiles() }),
      inspect: inputNode(z.string(), async (_state, { input }) => ({ findings: await inspectFile(input) })),
      judge: (state) => ({ verdict: state.findings.some((f) => f.severe) ? "fix" : "ship" }),
      fix: (state) =>
        edit((draft) => {
          draft.files = state.findings.map((f) => f.file);
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
    .edges({ [START]: "approve", approve: commandTargets("pay", "decline"), pay: END, decline: END });
}

const Shop = defineContext({ customerId: z.string() });
const Orders = defineState({ cart: z.array(z.string()).default([]), messages: channel.messages() });
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

test("the programs of the documentation type-check without casts", () => {
  expectTypeOf(programThree).toBeFunction();
  expectTypeOf(programFour).toBeFunction();
  expectTypeOf(toolGraph).toBeFunction();
  expectTypeOf(env).toBeFunction();
});
