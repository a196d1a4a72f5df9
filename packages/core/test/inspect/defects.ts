/** Graphs with planted defects, each with the expected `checkGraph` violations and their shortest paths. */
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineState,
  defineTool,
  END,
  fanOut,
  type Graph,
  type GraphMachine,
  type GraphRule,
  type GraphTypes,
  type InterruptShape,
  inputNode,
  join,
  route,
  type Schema,
  START,
  subgraph,
  toolNode,
} from "../../src/index.ts";
import { defineUntypedGraph, fromJavaScript } from "../support/from-javascript.ts";

/** A graph with node and channel names unknown to its types. */
export type AnyGraph = Graph<GraphTypes & { readonly state: Record<string, unknown> }>;

/** Graph with a planted defect. */
export interface Defect {
  readonly name: string;
  readonly graph: AnyGraph;
  readonly limit?: number;
  readonly finds: readonly Found[];
}

/** Expected violation and parts of its message. */
export interface Found {
  readonly rule: GraphRule;
  readonly path: string;
  readonly says: string;
}

const State = defineState({
  log: channel.list(z.string()),
  verdict: z.string().default(""),
  flash: channel.ephemeral(z.string()),
  messages: channel.messages(),
});

/** Creates a graph of nodes without effects: only control flow matters. Names with a capital letter are input nodes. */
export function createShape(
  edges: Readonly<Record<string, unknown>>,
  special: Readonly<Record<string, unknown>> = {},
  interrupts: InterruptShape = {},
): AnyGraph {
  const node = (name: string): unknown =>
    /^[A-Z]/.test(name) ? inputNode(z.unknown(), () => undefined) : () => undefined;
  const nodes = Object.keys(edges)
    .filter((name) => name !== START)
    .map((name) => [name, special[name] ?? node(name)]);
  return fromJavaScript<AnyGraph>(
    defineUntypedGraph({ name: "shape", state: State, interrupts }, Object.fromEntries(nodes), edges),
  );
}

/** Creates a route with an arbitrary choice. */
export function either(...targets: readonly string[]): unknown {
  return route(targets, () => targets[0] ?? END);
}

/** Creates a route that may choose several targets. */
export function some(...targets: readonly string[]): unknown {
  return route(targets, () => targets, { many: true });
}

/** Creates sends with arbitrary items. */
export function each(target: string, otherwise?: string): unknown {
  return fanOut(target, () => [1, 2], otherwise === undefined ? {} : { otherwise });
}

const ping = defineTool({
  name: "ping",
  description: "Answer.",
  input: z.object({}),
  effect: "pure",
  run: () => "pong",
});
/** Creates a tool node. */
export const createToolNode = (): unknown => toolNode({ tools: [ping] });
/** Creates a deferred node. */
export const createDeferredNode = (claims: object = {}): unknown => ({ defer: true, run: () => undefined, ...claims });
/** Creates a node with declared writes. */
export const createWritingNode = (...writes: readonly string[]): unknown => ({ writes, run: () => undefined });
/** Creates an input node with declared writes. */
export const createWritingInputNode = (...writes: readonly string[]): unknown =>
  inputNode(z.unknown(), () => undefined, { writes: writes as never });
/** Creates a node with declared interrupts. */
export const createAskingNode = (...interrupts: readonly string[]): unknown => ({ interrupts, run: () => undefined });
/** Creates a subgraph node. */
export const call = (graph: AnyGraph): unknown => subgraph(graph, { input: () => ({}), output: () => undefined });

/** Replaces the machine of a graph with the machine of another graph. */
export function withMachine(graph: AnyGraph, machine: GraphMachine): AnyGraph {
  return Object.defineProperties(
    {},
    { ...Object.getOwnPropertyDescriptors(graph), machine: { value: machine } },
  ) as AnyGraph;
}

const verdict = createWritingNode("verdict");
const undescribed: Schema<string> = {
  "~standard": { version: 1, vendor: "plain", validate: (value) => ({ value: String(value) }) },
};
const stuck = createShape({ [START]: ["a", "b"], a: join("z"), b: either("c", END), c: join("z"), z: END });

/** All defects, smallest first within each kind. */
export const defects: readonly Defect[] = [
  {
    name: "a branch that may end while a join waits for it",
    graph: createShape({ [START]: ["a", "b"], a: join("z"), b: either("c", END), c: join("z"), z: END }),
    finds: [{ rule: "dead_end", path: "start → a + b → (nothing runs)", says: 'the join to "z"' }],
  },
  {
    name: "a join of two branches of which one runs",
    graph: createShape({ [START]: either("a", "b"), a: join("z"), b: join("z"), z: END }),
    finds: [
      { rule: "dead_end", path: "start → a → (nothing runs)", says: 'still waits for "b"' },
      { rule: "dead_end", path: "start → b → (nothing runs)", says: 'still waits for "a"' },
    ],
  },
  {
    name: "a dead end that a short and a long way lead to",
    graph: createShape({
      [START]: "a",
      a: either("b", "c"),
      b: "b2",
      b2: "c",
      c: ["d", "e"],
      d: join("z"),
      e: either("f", END),
      f: join("z"),
      z: END,
    }),
    finds: [{ rule: "dead_end", path: "start → a → c → d + e → (nothing runs)", says: 'still waits for "f"' }],
  },
  {
    name: "a node that may give no command while a join waits",
    graph: createShape({ [START]: ["a", "b"], a: join("z"), b: commandTargets("b2"), b2: join("z"), z: END }),
    finds: [{ rule: "dead_end", path: "start → a + b → (nothing runs)", says: 'still waits for "b2"' }],
  },
  {
    name: "a loop that enters one side of its join again",
    graph: createShape({ [START]: ["a", "b"], a: join("z"), b: join("z"), z: either("a", END) }),
    finds: [{ rule: "dead_end", path: "start → a + b → z → a → (nothing runs)", says: 'still waits for "b"' }],
  },
  {
    name: "a join of what the tasks of one send may choose among",
    graph: createShape({ [START]: each("T", END), T: commandTargets("x", "y"), x: join("z"), y: join("z"), z: END }),
    finds: [
      { rule: "dead_end", path: "start → T → x → (nothing runs)", says: 'still waits for "y"' },
      { rule: "dead_end", path: "start → T → y → (nothing runs)", says: 'still waits for "x"' },
    ],
  },
  {
    name: "a join that many tasks of one send fill on one side only",
    graph: createShape({
      [START]: "a",
      a: commandTargets("T", "b"),
      T: commandTargets("x"),
      b: join("z"),
      x: join("z"),
      z: END,
    }),
    finds: [
      { rule: "dead_end", path: "start → a → b → (nothing runs)", says: 'still waits for "x"' },
      { rule: "dead_end", path: "start → a → T → x → (nothing runs)", says: 'still waits for "b"' },
    ],
  },
  {
    name: "a node that may end while a join waits on one way, and not on the other",
    graph: createShape({
      [START]: either("x", "f"),
      f: ["a", "y"],
      a: join("z"),
      y: "x",
      x: either("w", END),
      w: join("z"),
      z: END,
    }),
    finds: [
      { rule: "dead_end", path: "start → x → w → (nothing runs)", says: 'still waits for "a"' },
      { rule: "dead_end", path: "start → f → a + y → x → (nothing runs)", says: 'still waits for "w"' },
    ],
  },
  {
    name: "a deferred node that comes after its join",
    graph: createShape(
      { [START]: ["a", "b"], a: join("z"), b: either("c", END), c: join("z"), z: END },
      { c: createDeferredNode() },
    ),
    finds: [{ rule: "dead_end", path: "start → a + b → (nothing runs)", says: 'still waits for "c"' }],
  },
  {
    name: "sends that may select nothing, at the start",
    graph: createShape({ [START]: each("T"), T: END }),
    finds: [{ rule: "empty_fan_out", path: "start → (no items)", says: "{ otherwise: … }" }],
  },
  {
    name: "sends that may select nothing, beside a branch that has finished",
    graph: createShape({ [START]: ["a", "b"], a: "c", b: END, c: each("T"), T: END }),
    finds: [{ rule: "empty_fan_out", path: "start → a + b → c → (no items)", says: 'the fanOut after "c"' }],
  },
  {
    name: "a node that starts itself again beside the way out",
    graph: createShape({ [START]: "a", a: ["a", "b"], b: END }),
    finds: [{ rule: "endless_loop", path: "start → a → a + b → a + b", says: '"a" and "b" repeat endlessly' }],
  },
  {
    name: "a loop that one choice falls into",
    graph: createShape({ [START]: "a", a: either("b", "c"), b: END, c: ["b", "d"], d: "c" }),
    finds: [{ rule: "endless_loop", path: "start → a → c → b + d → c", says: "no choice leads from here to the end" }],
  },
  {
    name: "two loops behind one choice",
    graph: createShape({ [START]: either("a", "b", END), a: ["a", "c"], b: ["b", "c"], c: END }),
    finds: [
      { rule: "endless_loop", path: "start → a → a + c → a + c", says: '"a" and "c"' },
      { rule: "endless_loop", path: "start → b → b + c → b + c", says: '"b" and "c"' },
    ],
  },
  {
    name: "a loop that keeps a deferred node back for ever",
    graph: createShape({ [START]: "a", a: ["a", "z"], z: END }, { z: createDeferredNode() }),
    finds: [{ rule: "endless_loop", path: "start → a → a → a", says: '"a" repeats endlessly' }],
  },
  {
    name: "two nodes of one superstep that write one channel",
    graph: createShape(
      { [START]: ["a", "b"], a: END, b: END },
      { a: createWritingNode("verdict", "log"), b: createWritingNode("verdict", "log") },
    ),
    finds: [{ rule: "lost_write", path: "start → a + b", says: '"a" and "b" write the channel "verdict"' }],
  },
  {
    name: "two nodes that write one channel, side by side on one of two ways",
    graph: createShape(
      { [START]: "a", a: either("b", "c"), b: "d", c: ["b", "d"], d: END },
      { b: createWritingNode("flash"), d: createWritingNode("flash") },
    ),
    finds: [{ rule: "lost_write", path: "start → a → c → b + d", says: 'the channel "flash"' }],
  },
  {
    name: "tasks of one send that write one channel",
    graph: createShape({ [START]: "a", a: each("T", END), T: END }, { T: createWritingInputNode("verdict") }),
    finds: [{ rule: "lost_write", path: "start → a → T", says: 'two tasks of "T"' }],
  },
  {
    name: "nodes that only many tasks of one send lead to together",
    graph: createShape(
      { [START]: each("T", END), T: commandTargets("x", "y"), x: END, y: END },
      { x: verdict, y: verdict },
    ),
    finds: [{ rule: "lost_write", path: "start → T → x + y", says: '"x" and "y"' }],
  },
  {
    name: "nodes that many tasks of one node's own sends lead to together",
    graph: createShape(
      { [START]: "a", a: commandTargets("T"), T: commandTargets("x", "y"), x: END, y: END },
      { x: verdict, y: verdict },
    ),
    finds: [{ rule: "lost_write", path: "start → a → T → x + y", says: '"x" and "y"' }],
  },
  {
    name: "two tool nodes that answer the same calls",
    graph: createShape(
      { [START]: "model", model: some("t1", "t2", END), t1: "model", t2: "model" },
      { t1: createToolNode(), t2: createToolNode() },
    ),
    finds: [{ rule: "answered_twice", path: "start → model → t1 + t2", says: '"t1" and "t2"' }],
  },
  ...[
    z.never(),
    z.object({ ok: z.never() }),
    z.union([z.never(), z.never()]),
    { answer: z.never(), payload: z.string() },
  ].map(
    (approve, index): Defect => ({
      name: `a question that nobody can answer (${index + 1})`,
      graph: createShape({ [START]: "t", t: "a", a: END }, { t: createToolNode() }, { fine: z.boolean(), approve }),
      finds: [{ rule: "unanswerable_interrupt", path: 'start → t → a → (a asks "approve")', says: "accepts no value" }],
    }),
  ),
  {
    name: "a graph too wide to be walked",
    graph: createShape({
      [START]: ["a", "b"],
      a: some("c", "d", "e", "f", "g", END),
      b: some("c", "d", "e", "f", "g", END),
      c: END,
      d: END,
      e: END,
      f: END,
      g: END,
    }),
    limit: 1_000,
    finds: [{ rule: "unchecked", path: "start → a + b", says: "more than 1000 supersteps" }],
  },
  {
    name: "a machine without the way that an edge takes",
    graph: withMachine(
      createShape({ [START]: "a", a: either("b", "c"), b: "c", c: END }),
      createShape({ [START]: "a", a: either("b", "c"), b: END, c: END }).machine,
    ),
    finds: [{ rule: "machine_mismatch", path: "start → a → b", says: '"step.commit"' }],
  },
  {
    name: "a machine without the region of a node",
    graph: withMachine(
      createShape({ [START]: ["a", "b"], a: "c", b: "c", c: END }),
      createShape({ [START]: ["a", "b"], a: END, b: END }).machine,
    ),
    finds: [{ rule: "machine_mismatch", path: "start → a + b", says: 'leads to "c"' }],
  },
  {
    name: "sends into a join that select nothing and end",
    graph: createShape({ [START]: ["a", "b"], a: each("T", END), T: join("z"), b: join("z"), z: END }),
    finds: [{ rule: "dead_end", path: "start → a + b → (nothing runs)", says: 'still waits for "T"' }],
  },
  {
    name: "a join in a loop that one side leaves in the second round",
    graph: createShape({
      [START]: ["a", "b"],
      a: join("z"),
      b: join("z"),
      z: either("again", END),
      again: some("a", "b"),
    }),
    finds: [
      { rule: "dead_end", path: "start → a + b → z → again → a → (nothing runs)", says: 'still waits for "b"' },
      { rule: "dead_end", path: "start → a + b → z → again → b → (nothing runs)", says: 'still waits for "a"' },
    ],
  },
  {
    name: "a goto that leaves a fork before its join",
    graph: createShape({
      [START]: ["a", "b"],
      a: join("z"),
      b: commandTargets("c", "d"),
      c: join("z"),
      d: END,
      z: END,
    }),
    finds: [{ rule: "dead_end", path: "start → a + b → (nothing runs)", says: 'still waits for "c"' }],
  },
  {
    name: "two deferred nodes that were held together write one channel",
    graph: createShape(
      { [START]: ["a", "b"], a: "y", b: "b2", b2: "z", y: END, z: END },
      { y: createDeferredNode({ writes: ["verdict"] }), z: createDeferredNode({ writes: ["verdict"] }) },
    ),
    finds: [{ rule: "lost_write", path: "start → a + b → b2 → y + z", says: '"y" and "z"' }],
  },
  {
    name: "a deferred node that its own loop keeps back beside a join",
    graph: createShape({ [START]: ["a", "z"], a: ["a", "b"], b: END, z: END }, { z: createDeferredNode() }),
    finds: [{ rule: "endless_loop", path: "start → a → a + b → a + b", says: '"a" and "b"' }],
  },
  {
    name: "tool nodes that begin together",
    graph: createShape({ [START]: ["t1", "t2"], t1: END, t2: END }, { t1: createToolNode(), t2: createToolNode() }),
    finds: [{ rule: "answered_twice", path: "start → t1 + t2", says: "both execute every call" }],
  },
  {
    name: "a tool node whose command skips the join that waits for it",
    graph: createShape(
      { [START]: ["t", "b"], t: commandTargets("c"), c: join("z"), b: join("z"), z: END },
      { t: createToolNode() },
    ),
    finds: [{ rule: "dead_end", path: "start → t + b → (nothing runs)", says: 'still waits for "c"' }],
  },
  {
    name: "a loop of a model and its tools that a fork keeps alive",
    graph: createShape(
      { [START]: "model", model: ["tools", "talk"], tools: "model", talk: END },
      { tools: createToolNode() },
    ),
    finds: [
      { rule: "endless_loop", path: "start → model → tools + talk → model", says: '"model" and "tools" and "talk"' },
    ],
  },
  {
    name: "a question that nobody can answer, by the node that says it asks it",
    graph: createShape(
      { [START]: "a", a: "b", b: END },
      { a: createAskingNode("fine"), b: createAskingNode("approve") },
      { fine: z.boolean(), approve: z.never() },
    ),
    finds: [{ rule: "unanswerable_interrupt", path: 'start → a → b → (b asks "approve")', says: "accepts no value" }],
  },
  {
    name: "a question that nobody can answer before it expires",
    graph: createShape({ [START]: "a", a: END }, {}, { approve: { answer: z.never(), expiresMs: 1_000 } }),
    finds: [{ rule: "unanswerable_interrupt", path: 'start → a → (a asks "approve")', says: "can only expire" }],
  },
  {
    name: "a question that only an error handler asks, and nobody can answer",
    graph: createShape(
      { [START]: "a", a: "b", b: END },
      { a: createAskingNode(), b: { effect: "once", run: () => undefined, onError: () => undefined } },
      { approve: z.never() },
    ),
    finds: [{ rule: "unanswerable_interrupt", path: 'start → a → b → (b asks "approve")', says: "accepts no value" }],
  },
  {
    name: "a question that every node says it does not ask",
    graph: createShape(
      { [START]: "a", a: "b", b: END },
      { a: createAskingNode("fine"), b: { effect: "once", run: () => undefined } },
      { fine: z.boolean(), approve: z.boolean() },
    ),
    finds: [{ rule: "unused_interrupt", path: "start", says: 'no node raises the interrupt "approve"' }],
  },
  {
    name: "an answer that JSON cannot say",
    graph: createShape({ [START]: "a", a: END }, {}, { when: z.object({ day: z.date() }) }),
    finds: [{ rule: "undescribed_answer", path: 'start → a → (a asks "when")', says: "Date" }],
  },
  {
    name: "an answer whose schema describes itself to nobody",
    graph: createShape({ [START]: "a", a: END }, {}, { when: undescribed }),
    finds: [{ rule: "undescribed_answer", path: 'start → a → (a asks "when")', says: "has no JSON Schema" }],
  },
  {
    name: "a graph inside with a dead end",
    graph: createShape({ [START]: "a", a: "call", call: END }, { call: call(stuck) }),
    finds: [{ rule: "dead_end", path: "start → a → call → call.a + call.b → (nothing runs)", says: 'waits for "c"' }],
  },
  {
    name: "a graph inside two nodes: told once, where it is nearest",
    graph: createShape(
      { [START]: "far", far: ["one", "on"], one: END, on: "two", two: END },
      { two: call(stuck), one: call(stuck) },
    ),
    finds: [
      { rule: "dead_end", path: "start → far → one + on → one.a + one.b → (nothing runs)", says: 'waits for "c"' },
    ],
  },
  {
    name: "a graph inside a graph inside a graph that loops for ever",
    graph: createShape(
      { [START]: "one", one: END },
      {
        one: call(
          createShape(
            { [START]: "x", x: "two", two: END },
            { two: call(createShape({ [START]: "a", a: ["a", "b"], b: END })) },
          ),
        ),
      },
    ),
    finds: [
      {
        rule: "endless_loop",
        path: "start → one → one.x → one.two → one.two.a → one.two.a + one.two.b → one.two.a + one.two.b",
        says: '"one.two.a" and "one.two.b" repeat endlessly',
      },
    ],
  },
  {
    name: "a question inside that nobody can answer",
    graph: createShape(
      { [START]: "research", research: END },
      { research: call(createShape({ [START]: "plan", plan: END }, {}, { scope: z.never() })) },
    ),
    finds: [
      {
        rule: "unanswerable_interrupt",
        path: 'start → research → research.plan → (research.plan asks "research.scope")',
        says: 'the interrupt "research.scope" waits forever',
      },
    ],
  },
  {
    name: "a question inside that nobody asks",
    graph: createShape(
      { [START]: "research", research: END },
      {
        research: call(
          createShape({ [START]: "plan", plan: END }, { plan: createAskingNode() }, { scope: z.boolean() }),
        ),
      },
    ),
    finds: [
      { rule: "unused_interrupt", path: "start → research", says: 'no node raises the interrupt "research.scope"' },
    ],
  },
  {
    name: "a question of the outer graph whose only node is a graph",
    graph: createShape(
      { [START]: "research", research: END },
      { research: call(createShape({ [START]: "plan", plan: END })) },
      { scope: z.boolean() },
    ),
    finds: [{ rule: "unused_interrupt", path: "start", says: 'no node raises the interrupt "scope"' }],
  },
  {
    name: "sends inside that may select nothing",
    graph: createShape({ [START]: "call", call: END }, { call: call(createShape({ [START]: each("T"), T: END })) }),
    finds: [{ rule: "empty_fan_out", path: "start → call → (no items)", says: "{ otherwise: … }" }],
  },
  {
    name: "two nodes inside that write one channel",
    graph: createShape(
      { [START]: "call", call: END },
      { call: call(createShape({ [START]: ["a", "b"], a: END, b: END }, { a: verdict, b: verdict })) },
    ),
    finds: [{ rule: "lost_write", path: "start → call → call.a + call.b", says: '"call.a" and "call.b"' }],
  },
  {
    name: "a graph and a node beside it that write one channel",
    graph: createShape(
      { [START]: ["call", "b"], call: END, b: END },
      { call: { writes: ["verdict"], run: call(createShape({ [START]: "a", a: END })) }, b: verdict },
    ),
    finds: [{ rule: "lost_write", path: "start → call + b", says: '"call" and "b"' }],
  },
  {
    name: "a graph inside with a machine that goes another way",
    graph: createShape(
      { [START]: "call", call: END },
      {
        call: call(
          withMachine(
            createShape({ [START]: "a", a: either("b", "c"), b: "c", c: END }),
            createShape({ [START]: "a", a: either("b", "c"), b: END, c: END }).machine,
          ),
        ),
      },
    ),
    finds: [{ rule: "machine_mismatch", path: "start → call → call.a → call.b", says: '"step.commit"' }],
  },
  {
    name: "a graph inside that is too wide to be walked",
    graph: createShape(
      { [START]: "call", call: END },
      { call: call(createShape({ [START]: some("a", "b", "c", "d", "e"), a: END, b: END, c: END, d: END, e: END })) },
    ),
    limit: 10,
    finds: [{ rule: "unchecked", path: "start → call", says: "more than 10 supersteps" }],
  },
  {
    name: "two defects at once, the nearer one first",
    graph: createShape({
      [START]: ["a", "b"],
      a: each("T"),
      b: either("b2", END),
      T: join("z"),
      b2: join("z"),
      z: END,
    }),
    finds: [
      { rule: "empty_fan_out", path: "start → a + b → (no items)", says: 'after "a"' },
      { rule: "dead_end", path: "start → a + b → T → (nothing runs)", says: 'waits for "b2"' },
    ],
  },
];
