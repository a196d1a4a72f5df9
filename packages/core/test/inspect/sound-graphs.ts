/**
 * Graphs without defects that `checkGraph` must accept: typical user programs, and constructs that resemble defects.
 */
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  defineTool,
  END,
  edit,
  fanOut,
  goto,
  inputNode,
  join,
  route,
  START,
  send,
  subgraph,
  toolNode,
} from "../../src/index.ts";
import {
  type AnyGraph,
  call,
  createAskingNode,
  createDeferredNode,
  createShape,
  createToolNode,
  createWritingInputNode,
  createWritingNode,
  each,
  either,
  some,
} from "./defects.ts";

const Review = defineState({
  files: z.array(z.string()).default([]),
  findings: channel.list(z.object({ file: z.string(), severe: z.boolean() })),
  verdict: z.enum(["ship", "fix"]).nullable().default(null),
});

/** Parallel nodes, a route and a loop. */
const review = defineGraph({ name: "review", state: Review })
  .nodes({
    collect: async () => ({ files: ["a.ts"] }),
    inspect: inputNode(z.string(), async (_state, { input }) => ({ findings: [{ file: input, severe: false }] })),
    judge: (state) => ({ verdict: state.findings.some((each) => each.severe) ? "fix" : "ship" }) as const,
    fix: (state) =>
      edit((draft) => {
        draft.files = state.findings.map((each) => each.file);
      }),
  })
  .edges({
    [START]: "collect",
    collect: fanOut("inspect", (state) => state.files, { otherwise: "judge" }),
    inspect: "judge",
    judge: route(["fix", END], (state) => (state.verdict === "fix" ? "fix" : END)),
    fix: "collect",
  });

const Pay = defineState({ amount: z.number(), note: z.string().optional() });

/** An interrupt with an expiry of a week. */
const payment = defineGraph({
  name: "payment",
  state: Pay,
  interrupts: { approve: z.object({ ok: z.boolean(), note: z.string().optional() }) },
})
  .nodes({
    approve: {
      interrupts: ["approve"],
      writes: ["note"],
      run: async (state, { interrupt }) => {
        const { ok, note } = await interrupt("approve", { payload: { amount: state.amount } });
        return ok ? goto("pay") : goto("decline", { note });
      },
    },
    pay: { interrupts: [], effect: "once", run: () => undefined },
    decline: { interrupts: [], run: () => undefined },
  })
  .edges({ [START]: "approve", approve: commandTargets("pay", "decline"), pay: END, decline: END });

/** A subgraph with an interrupt. */
const bill = defineGraph({
  name: "bill",
  state: defineState({ total: z.number().default(0), note: z.string().default("") }),
})
  .nodes({
    pay: subgraph(payment, {
      input: (state) => ({ amount: state.total }),
      output: (result) => ({ note: result.note ?? "paid" }),
    }),
    file: () => undefined,
  })
  .edges({ [START]: "pay", pay: "file", file: END });

const Chat = defineState({ messages: channel.messages() });
const look = defineTool({
  name: "look",
  description: "Look.",
  input: z.object({}),
  effect: "pure",
  run: () => "nothing",
});

/** An agent graph. */
const agent = defineGraph({ name: "agent", state: Chat, interrupts: { approve: z.boolean() } })
  .nodes({ model: { interrupts: [], run: () => undefined }, tools: toolNode({ tools: [look] }) })
  .edges({ [START]: "model", model: route(["tools", END], () => END), tools: "model" });

const fan = defineGraph({
  name: "fan",
  state: defineState({ urls: channel.list(z.string()), pages: channel.list(z.string()) }),
})
  .nodes({
    plan: () => [send("fetch", "a"), send("fetch", "b"), goto("wait")],
    fetch: inputNode(z.string(), (_state, { input }) => ({ pages: [input] }), { writes: ["pages"] }),
    wait: () => undefined,
    merge: { defer: true, run: () => undefined },
  })
  .edges({ [START]: "plan", plan: commandTargets("fetch", "wait"), fetch: "merge", wait: "merge", merge: END });

const inner = createShape({ [START]: ["a", "b"], a: join("z"), b: join("z"), z: END });

/** All sound graphs by description. */
export const soundGraphs: readonly (readonly [string, AnyGraph])[] = [
  ["a review: parallel work, a route, a loop", review],
  ["a payment with an interrupt", payment],
  ["a bill that holds the payment", bill],
  ["an agent: a model and its tools", agent],
  ["sends and a goto of one node, gathered by a deferred one", fan],
  ["a line", createShape({ [START]: "a", a: "b", b: END })],
  ["an empty graph", createShape({ [START]: either("a", END), a: END })],
  ["a loop with a way out", createShape({ [START]: "a", a: either("b", END), b: "a" })],
  [
    "a join in a loop",
    createShape({ [START]: ["a", "b"], a: join("z"), b: join("z"), z: either("again", END), again: ["a", "b"] }),
  ],
  [
    "a join around a loop",
    createShape({ [START]: ["a", "b"], a: either("a2", "a3"), a2: "a", a3: join("z"), b: join("z"), z: END }),
  ],
  ["branches of different lengths", createShape({ [START]: ["a", "b"], a: join("z"), b: "b2", b2: join("z"), z: END })],
  ["a fan-out that may be empty", createShape({ [START]: each("T", "z"), T: "z", z: END })],
  [
    "a fan-out into a join",
    createShape({ [START]: ["a", "b"], a: each("T", "c"), T: "c", c: join("z"), b: join("z"), z: END }),
  ],
  ["a fan-out of a fan-out", createShape({ [START]: each("T", END), T: each("U", "z"), U: "z", z: END })],
  [
    "commands that lead on or end",
    createShape({ [START]: "a", a: commandTargets("a", "b", "T"), b: END, T: commandTargets("a", "b") }),
  ],
  ["a route that chooses several", createShape({ [START]: "a", a: some("b", "c", END), b: "d", c: "d", d: END })],
  [
    "a deferred node after branches that may end",
    createShape({ [START]: ["a", "b"], a: "z", b: either("b2", END), b2: "z", z: END }, { z: createDeferredNode() }),
  ],
  [
    "a deferred node in a loop",
    createShape({ [START]: ["a", "b"], a: "z", b: "b2", b2: "z", z: either("a", END) }, { z: createDeferredNode() }),
  ],
  [
    "nodes that write one channel on ways that exclude each other",
    createShape(
      { [START]: either("a", "b"), a: "z", b: "z", z: END },
      { a: createWritingNode("verdict"), b: createWritingNode("verdict") },
    ),
  ],
  [
    "nodes that write one channel one after the other",
    createShape(
      { [START]: ["a", "b"], a: join("z"), b: join("z"), z: END },
      { a: createWritingNode("verdict"), b: createWritingNode("log"), z: createWritingNode("verdict") },
    ),
  ],
  [
    "tasks of one send that write a list",
    createShape({ [START]: each("T", END), T: END }, { T: createWritingInputNode("log") }),
  ],
  [
    "two tool nodes of which one runs",
    createShape(
      { [START]: "m", m: either("t1", "t2", END), t1: "m", t2: "m" },
      { t1: createToolNode(), t2: createToolNode() },
    ),
  ],
  [
    "a tool node next to other nodes",
    createShape(
      { [START]: ["t", "b"], t: join("z"), b: join("z"), z: END },
      { t: createToolNode(), b: createWritingNode("verdict") },
    ),
  ],
  [
    "an interrupt of the error handler of a `once` node",
    createShape(
      { [START]: "a", a: END },
      { a: { effect: "once", interrupts: ["approve"], run: () => undefined, onError: () => undefined } },
      { approve: z.boolean() },
    ),
  ],
  [
    "questions of every kind that can be answered",
    createShape(
      { [START]: "a", a: "b", b: END },
      { a: createAskingNode("yes", "when"), b: createAskingNode("any", "choice") },
      {
        yes: z.boolean(),
        when: z.iso.datetime().transform((text) => new Date(text)),
        any: z.unknown(),
        choice: { answer: z.union([z.never(), z.string()]), payload: z.date() },
      },
    ),
  ],
  [
    "a graph inside two nodes that run together",
    createShape({ [START]: ["a", "b"], a: END, b: END }, { a: call(inner), b: call(inner) }),
  ],
  [
    "graphs three deep, one of them in a loop",
    createShape(
      { [START]: "a", a: either("a", END) },
      {
        a: call(
          createShape({ [START]: "b", b: END }, { b: call(createShape({ [START]: "c", c: END }, { c: call(inner) })) }),
        ),
      },
    ),
  ],
  [
    "a graph inside that is sent to",
    createShape({ [START]: each("T", END), T: END }, { T: inputNode(z.unknown(), call(inner) as () => undefined) }),
  ],
];
