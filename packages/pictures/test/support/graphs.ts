/** Graphs for pictures: all kinds of nodes and edges, nested, random or fixed. */
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  defineTool,
  durableMachine,
  END,
  fanOut,
  type Graph,
  type GraphDefinition,
  inputNode,
  join,
  route,
  START,
  subgraph,
  toolNode,
} from "@statewright/core";
import fc from "fast-check";
import { createMachine } from "xstate";
import * as z from "zod";

const State = defineState({ messages: channel.messages() });
const ping = defineTool({
  name: "ping",
  description: "Answer.",
  input: z.object({}),
  effect: "pure",
  run: () => "pong",
});

/** A node without a body: `input`, `tools`, `deferred`, or a subgraph. */
export type Part = "body" | "input" | "tools" | "deferred" | Graph;

/** Creates a graph of such nodes. */
export function createGraph(
  parts: Readonly<Record<string, Part>>,
  edges: Readonly<Record<string, unknown>>,
  name = "drawn",
): Graph {
  const nodes = Object.fromEntries(Object.entries(parts).map(([key, part]) => [key, createNode(key, part)]));
  return defineGraph({ name, state: State })
    .nodes(nodes as Record<string, () => undefined>)
    .edges(edges as never) as Graph;
}

function createNode(name: string, part: Part): unknown {
  const body = (): undefined => undefined;
  if (part === "tools") return toolNode({ tools: [ping] });
  if (part === "deferred") return { defer: true, run: body };
  const run = typeof part === "string" ? body : subgraph(part, { input: () => ({}), output: body });
  return /^[A-Z]/.test(name) ? inputNode(z.unknown(), run as never) : run;
}

/** Creates a route with an arbitrary choice. */
export function either(...targets: readonly string[]): unknown {
  return route(targets, () => targets[0] ?? END);
}

/** Creates sends with arbitrary items. */
export function each(target: string, otherwise?: string): unknown {
  return fanOut(target, () => [1, 2], otherwise === undefined ? {} : { otherwise });
}

/**
 * Random graphs with subgraphs down to the given depth. Each node leads to the next one, so that all are reachable,
 * and possibly to others.
 */
export function generateGraph(depth: number): fc.Arbitrary<Graph> {
  const plain: fc.Arbitrary<Part> = fc.constantFrom("body", "body", "input", "tools", "deferred");
  const part =
    depth === 0 ? plain : fc.oneof({ weight: 6, arbitrary: plain }, { weight: 1, arbitrary: generateGraph(depth - 1) });
  const node = fc.record({
    part,
    form: fc.constantFrom("to", "many", "route", "commandTargets", "join"),
    jumps: fc.array(fc.nat({ max: 9 }), { maxLength: 2 }),
    ends: fc.boolean(),
  });
  return fc.array(node, { minLength: 1, maxLength: 7 }).map((drawn) => {
    const names = drawn.map(({ part }, index) => `${part === "input" ? "T" : "n"}${index}`);
    const isPlain = (name: string): boolean => !name.startsWith("T");
    const edges: Record<string, unknown> = {};
    [{ form: "to", jumps: [], ends: false }, ...drawn].forEach(({ form, jumps, ends }, index) => {
      const next = names[index] ?? END;
      const others = [...jumps.flatMap((jump) => names[jump] ?? []).filter(isPlain), ...(ends ? [END] : [])];
      const all = [next, ...others];
      const source = names[index - 1] ?? START;
      if (!isPlain(next)) edges[source] = each(next, others[0]);
      else if (form === "join") edges[source] = join(next);
      else if (form === "commandTargets" && source !== START) edges[source] = commandTargets(...all);
      else if (form === "to") edges[source] = next;
      else edges[source] = form === "many" ? all : either(...all);
    });
    return createGraph(Object.fromEntries(names.map((name, index) => [name, drawn[index]?.part ?? "body"])), edges);
  });
}

interface StateConfig {
  readonly id: string;
  readonly on: Readonly<Record<string, string>>;
  readonly states: Record<string, StateConfig>;
  type?: "parallel";
  initial?: string;
}

/** Random durable machines: a tree of states, with events between any of them. */
export const anyMachine: fc.Arbitrary<GraphDefinition> = fc
  .array(fc.record({ parent: fc.nat(), parallel: fc.boolean(), to: fc.array(fc.nat(), { maxLength: 3 }) }), {
    minLength: 2,
    maxLength: 14,
  })
  .map((drawn) => {
    const root: StateConfig = { id: "root", on: {}, states: {} };
    const made = [root];
    drawn.forEach(({ parent, parallel, to }, index) => {
      const name = `s${index}`;
      const on = Object.fromEntries(to.map((target, event) => [`E${event}`, `#s${target % drawn.length}`]));
      const state: StateConfig = { id: name, on, states: {} };
      const holder = made[parent % made.length] ?? root;
      if (parallel && holder !== root) holder.type = "parallel";
      else holder.initial ??= name;
      holder.states[name] = state;
      made.push(state);
    });
    for (const state of made) {
      if (state.type === "parallel") delete state.initial;
      else if (Object.keys(state.states).length > 0) state.initial ??= Object.keys(state.states)[0] ?? "";
    }
    return durableMachine(createMachine(root as never), { version: 1 });
  });

/** Two levels of subgraphs around a fan-out. */
export function createNestedGraph(): Graph {
  const search = createGraph(
    { query: "body", Fetch: "input", rank: "deferred" },
    { [START]: "query", query: each("Fetch", END), Fetch: "rank", rank: END },
    "search",
  );
  const research = createGraph(
    { plan: "body", search, write: "body", check: "tools" },
    {
      [START]: "plan",
      plan: ["search", "write"],
      search: join("check"),
      write: join("check"),
      check: commandTargets("write"),
    },
    "research",
  );
  return createGraph(
    { ask: "body", research, Source: search, publish: "body" },
    {
      [START]: "ask",
      ask: either("research", "publish"),
      research: each("Source", "publish"),
      Source: "publish",
      publish: either("ask", "publish", END),
    },
    "desk",
  );
}

/** Sixty nodes in a row with shortcuts; every twentieth node is a graph with a subgraph. */
export function createLargeGraph(): Graph {
  const words = ["load", "parse", "check_input", "score", "merge", "ask", "summarise", "store_the_result"];
  const names = Array.from({ length: 48 }, (_, index) => `${words[index % words.length]}_${index}`);
  const inner = createGraph(
    { look: "body", Read: "input", rank: "deferred" },
    { [START]: "look", look: each("Read", "rank"), Read: "rank", rank: END },
  );
  const outer = createGraph({ plan: "tools", inner }, { [START]: "plan", plan: either("inner", END), inner: "plan" });
  const edges: Record<string, unknown> = { [START]: names[0] };
  names.forEach((name, index) => {
    const [next = END, other = END, before = END] = [
      names[index + 1],
      names[index + 3 + (index % 5)],
      names[index - 7],
    ];
    if (index % 4 === 1) edges[name] = either(next, other, ...(index % 3 === 0 ? [before] : []));
    else edges[name] = index % 7 === 3 ? [next, other] : next;
  });
  return createGraph(
    Object.fromEntries(names.map((name, index) => [name, index % 20 === 9 ? outer : "body"])),
    edges,
    "large",
  );
}
