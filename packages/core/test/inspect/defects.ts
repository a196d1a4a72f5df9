/** Graphs with planted defects: what `checkGraph` must say of each, with the shortest way there. */
import * as z from "zod";
import {
  defineGraph,
  defineState,
  defineTool,
  END,
  ephemeral,
  type Graph,
  type GraphMachine,
  type GraphRule,
  type GraphTypes,
  gotos,
  type InterruptShape,
  join,
  list,
  messages,
  route,
  START,
  sends,
  task,
  toolNode,
} from "../../src/index.ts";

/** A graph of which only the tests know nodes and channels. */
export type AnyGraph = Graph<GraphTypes & { readonly state: Record<string, unknown> }>;

/** A graph with a defect. */
export interface Defect {
  readonly name: string;
  readonly graph: AnyGraph;
  readonly options?: { readonly limit?: number; readonly writes?: Readonly<Record<string, readonly string[]>> };
  readonly finds: readonly Found[];
}

/** A violation, and what its message must say. */
export interface Found {
  readonly rule: GraphRule;
  readonly path: string;
  readonly says: string;
}

const State = defineState({
  log: list(z.string()),
  verdict: z.string().default(""),
  flash: ephemeral(z.string()),
  messages: messages(),
});

/** A graph whose nodes do nothing: what counts is where control may go. Names with a capital letter are task nodes. */
export function shape(
  edges: Readonly<Record<string, unknown>>,
  special: Readonly<Record<string, unknown>> = {},
  interrupts: InterruptShape = {},
): AnyGraph {
  const node = (name: string): unknown => (/^[A-Z]/.test(name) ? task(z.unknown(), () => undefined) : () => undefined);
  const nodes = Object.keys(edges)
    .filter((name) => name !== START)
    .map((name) => [name, special[name] ?? node(name)]);
  return defineGraph({ name: "shape", state: State, interrupts })
    .nodes(Object.fromEntries(nodes) as Record<string, () => undefined>)
    .edges(edges as never) as unknown as AnyGraph;
}

/** A route whose choice does not matter. */
export function either(...targets: readonly string[]): unknown {
  return route(targets, () => targets[0] ?? END);
}

/** A route that may choose several. */
export function some(...targets: readonly string[]): unknown {
  return route(targets, () => targets, { many: true });
}

/** Sends whose items do not matter. */
export function each(target: string, otherwise?: string): unknown {
  return sends(target, () => [1, 2], otherwise === undefined ? {} : { otherwise });
}

const ping = defineTool({
  name: "ping",
  description: "Answer.",
  input: z.object({}),
  effect: "pure",
  run: () => "pong",
});
const tools = (): unknown => toolNode({ tools: [ping] });
const deferred = (): unknown => ({ defer: true, run: () => undefined });

/** A graph with the machine of another. */
export function withMachine(graph: AnyGraph, machine: GraphMachine): AnyGraph {
  return Object.defineProperties(
    {},
    { ...Object.getOwnPropertyDescriptors(graph), machine: { value: machine } },
  ) as AnyGraph;
}

/** Every defect, smallest first within its kind. */
export const defects: readonly Defect[] = [
  {
    name: "a branch that may end while a join waits for it",
    graph: shape({ [START]: ["a", "b"], a: join("z"), b: either("c", END), c: join("z"), z: END }),
    finds: [{ rule: "dead_end", path: "start → a + b → (nothing runs)", says: 'the join to "z"' }],
  },
  {
    name: "a join of two branches of which one runs",
    graph: shape({ [START]: either("a", "b"), a: join("z"), b: join("z"), z: END }),
    finds: [
      { rule: "dead_end", path: "start → a → (nothing runs)", says: 'still waits for "b"' },
      { rule: "dead_end", path: "start → b → (nothing runs)", says: 'still waits for "a"' },
    ],
  },
  {
    name: "a dead end that a short and a long way lead to",
    graph: shape({
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
    graph: shape({ [START]: ["a", "b"], a: join("z"), b: gotos("b2"), b2: join("z"), z: END }),
    finds: [{ rule: "dead_end", path: "start → a + b → (nothing runs)", says: 'still waits for "b2"' }],
  },
  {
    name: "a loop that enters one side of its join again",
    graph: shape({ [START]: ["a", "b"], a: join("z"), b: join("z"), z: either("a", END) }),
    finds: [{ rule: "dead_end", path: "start → a + b → z → a → (nothing runs)", says: 'still waits for "b"' }],
  },
  {
    name: "a join of what the tasks of one send may choose among",
    graph: shape({ [START]: each("T", END), T: gotos("x", "y"), x: join("z"), y: join("z"), z: END }),
    finds: [
      { rule: "dead_end", path: "start → T → x → (nothing runs)", says: 'still waits for "y"' },
      { rule: "dead_end", path: "start → T → y → (nothing runs)", says: 'still waits for "x"' },
    ],
  },
  {
    name: "a join that many tasks of one send fill on one side only",
    graph: shape({ [START]: "a", a: gotos("T", "b"), T: gotos("x"), b: join("z"), x: join("z"), z: END }),
    finds: [
      { rule: "dead_end", path: "start → a → b → (nothing runs)", says: 'still waits for "x"' },
      { rule: "dead_end", path: "start → a → T → x → (nothing runs)", says: 'still waits for "b"' },
    ],
  },
  {
    name: "a node that may end while a join waits on one way, and not on the other",
    graph: shape({
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
    graph: shape({ [START]: ["a", "b"], a: join("z"), b: either("c", END), c: join("z"), z: END }, { c: deferred() }),
    finds: [{ rule: "dead_end", path: "start → a + b → (nothing runs)", says: 'still waits for "c"' }],
  },
  {
    name: "sends that may select nothing, at the start",
    graph: shape({ [START]: each("T"), T: END }),
    finds: [{ rule: "empty_sends", path: "start → (no items)", says: "{ otherwise: … }" }],
  },
  {
    name: "sends that may select nothing, beside a branch that has finished",
    graph: shape({ [START]: ["a", "b"], a: "c", b: END, c: each("T"), T: END }),
    finds: [{ rule: "empty_sends", path: "start → a + b → c → (no items)", says: 'the sends after "c"' }],
  },
  {
    name: "a node that starts itself again beside the way out",
    graph: shape({ [START]: "a", a: ["a", "b"], b: END }),
    finds: [{ rule: "endless_loop", path: "start → a → a + b → a + b", says: '"a" and "b" run again' }],
  },
  {
    name: "a loop that one choice falls into",
    graph: shape({ [START]: "a", a: either("b", "c"), b: END, c: ["b", "d"], d: "c" }),
    finds: [{ rule: "endless_loop", path: "start → a → c → b + d → c", says: "no choice leads out" }],
  },
  {
    name: "two loops behind one choice",
    graph: shape({ [START]: either("a", "b", END), a: ["a", "c"], b: ["b", "c"], c: END }),
    finds: [
      { rule: "endless_loop", path: "start → a → a + c → a + c", says: '"a" and "c"' },
      { rule: "endless_loop", path: "start → b → b + c → b + c", says: '"b" and "c"' },
    ],
  },
  {
    name: "a loop that keeps a deferred node back for ever",
    graph: shape({ [START]: "a", a: ["a", "z"], z: END }, { z: deferred() }),
    finds: [{ rule: "endless_loop", path: "start → a → a → a", says: '"a" runs again' }],
  },
  {
    name: "two nodes of one superstep that write one channel",
    graph: shape({ [START]: ["a", "b"], a: END, b: END }),
    options: { writes: { a: ["verdict", "log"], b: ["verdict", "log"] } },
    finds: [{ rule: "lost_write", path: "start → a + b", says: '"a" and "b" write the channel "verdict"' }],
  },
  {
    name: "two nodes that write one channel, side by side on one of two ways",
    graph: shape({ [START]: "a", a: either("b", "c"), b: "d", c: ["b", "d"], d: END }),
    options: { writes: { b: ["flash"], d: ["flash"] } },
    finds: [{ rule: "lost_write", path: "start → a → c → b + d", says: 'the channel "flash"' }],
  },
  {
    name: "tasks of one send that write one channel",
    graph: shape({ [START]: "a", a: each("T", END), T: END }),
    options: { writes: { T: ["verdict"] } },
    finds: [{ rule: "lost_write", path: "start → a → T", says: 'two tasks of "T"' }],
  },
  {
    name: "nodes that only many tasks of one send lead to together",
    graph: shape({ [START]: each("T", END), T: gotos("x", "y"), x: END, y: END }),
    options: { writes: { x: ["verdict"], y: ["verdict"] } },
    finds: [{ rule: "lost_write", path: "start → T → x + y", says: '"x" and "y"' }],
  },
  {
    name: "nodes that many tasks of one node's own sends lead to together",
    graph: shape({ [START]: "a", a: gotos("T"), T: gotos("x", "y"), x: END, y: END }),
    options: { writes: { x: ["verdict"], y: ["verdict"] } },
    finds: [{ rule: "lost_write", path: "start → a → T → x + y", says: '"x" and "y"' }],
  },
  {
    name: "two tool nodes that answer the same calls",
    graph: shape(
      { [START]: "model", model: some("t1", "t2", END), t1: "model", t2: "model" },
      { t1: tools(), t2: tools() },
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
      graph: shape({ [START]: "t", t: "a", a: END }, { t: tools() }, { fine: z.boolean(), approve }),
      finds: [{ rule: "unanswerable_interrupt", path: 'start → t → a → (a asks "approve")', says: "accepts nothing" }],
    }),
  ),
  {
    name: "a graph too wide to be walked",
    graph: shape({
      [START]: ["a", "b"],
      a: some("c", "d", "e", "f", "g", END),
      b: some("c", "d", "e", "f", "g", END),
      c: END,
      d: END,
      e: END,
      f: END,
      g: END,
    }),
    options: { limit: 1_000 },
    finds: [{ rule: "unchecked", path: "start → a + b", says: "more than 1000 supersteps" }],
  },
  {
    name: "a machine without the way that an edge takes",
    graph: withMachine(
      shape({ [START]: "a", a: either("b", "c"), b: "c", c: END }),
      shape({ [START]: "a", a: either("b", "c"), b: END, c: END }).machine,
    ),
    finds: [{ rule: "machine_differs", path: "start → a → b", says: '"step.commit"' }],
  },
  {
    name: "a machine without the region of a node",
    graph: withMachine(
      shape({ [START]: ["a", "b"], a: "c", b: "c", c: END }),
      shape({ [START]: ["a", "b"], a: END, b: END }).machine,
    ),
    finds: [{ rule: "machine_differs", path: "start", says: '"c"' }],
  },
  {
    name: "two defects at once, the nearer one first",
    graph: shape({ [START]: ["a", "b"], a: each("T"), b: either("b2", END), T: join("z"), b2: join("z"), z: END }),
    finds: [
      { rule: "empty_sends", path: "start → a + b → (no items)", says: 'after "a"' },
      { rule: "dead_end", path: "start → a + b → T → (nothing runs)", says: 'waits for "b2"' },
    ],
  },
];
