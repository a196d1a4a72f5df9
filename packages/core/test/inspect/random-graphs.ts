/** Random graphs: sound ones built from parts with one entry and one exit, and arbitrary ones that compile. */
import fc from "fast-check";
import * as z from "zod";
import {
  commandTargets,
  defineState,
  END,
  fanOut,
  type Graph,
  type GraphDefaults,
  goto,
  type InterruptShape,
  inputNode,
  isStatewrightError,
  join,
  type NodeRuntime,
  route,
  START,
  type StateTypes,
  send,
} from "../../src/index.ts";
import { defineUntypedGraph } from "../support/from-javascript.ts";

/** Edge of a node, and whether the node is deferred. */
export type EdgeDescription = { readonly deferred?: boolean } & (
  | { readonly kind: "to" | "route" | "some" | "commandTargets"; readonly targets: readonly string[] }
  | { readonly kind: "fanOut"; readonly target: string; readonly otherwise?: string }
  | { readonly kind: "join"; readonly target: string }
);

/** Edges by source node. Names with a capital letter are input nodes. */
export type GraphDescription = Readonly<Record<string, EdgeDescription>>;

type Part =
  | { readonly kind: "node" }
  | { readonly kind: "line"; readonly parts: readonly Part[] }
  | { readonly kind: "choice" | "fork"; readonly parts: readonly Part[] }
  | { readonly kind: "loop" | "fan"; readonly part: Part };

/** Sound graphs with parts nested to the given depth. */
export function generateSoundDescriptions(depth: number): fc.Arbitrary<GraphDescription> {
  return getPart(depth).map((part) => {
    const edges: Record<string, EdgeDescription> = {};
    const { entry, exit } = drawPart(part, edges, { count: 0 });
    return { [START]: { kind: "to", targets: [entry] }, ...edges, [exit]: { kind: "to", targets: [END] } };
  });
}

function getPart(depth: number): fc.Arbitrary<Part> {
  const node: fc.Arbitrary<Part> = fc.constant({ kind: "node" });
  if (depth === 0) return node;
  const inner = getPart(depth - 1);
  const parts = fc.array(inner, { minLength: 2, maxLength: 3 });
  return fc.oneof(
    node,
    parts.map((each): Part => ({ kind: "line", parts: each })),
    parts.map((each): Part => ({ kind: "choice", parts: each })),
    parts.map((each): Part => ({ kind: "fork", parts: each })),
    inner.map((part): Part => ({ kind: "loop", part })),
    inner.map((part): Part => ({ kind: "fan", part })),
  );
}

/** Draws a part; the following part decides the edge of its exit. */
function drawPart(
  part: Part,
  edges: Record<string, EdgeDescription>,
  names: { count: number },
): { readonly entry: string; readonly exit: string } {
  const createName = (prefix = "n"): string => `${prefix}${names.count++}`;
  switch (part.kind) {
    case "node": {
      const name = createName();
      return { entry: name, exit: name };
    }
    case "line": {
      const drawn = part.parts.map((each) => drawPart(each, edges, names));
      drawn.slice(1).forEach(({ entry }, index) => {
        edges[drawn[index]!.exit] = { kind: "to", targets: [entry] };
      });
      return { entry: drawn[0]!.entry, exit: drawn.at(-1)!.exit };
    }
    case "choice":
    case "fork": {
      const entry = createName();
      const exit = createName();
      const drawn = part.parts.map((each) => drawPart(each, edges, names));
      edges[entry] = { kind: part.kind === "fork" ? "to" : "route", targets: drawn.map((each) => each.entry) };
      for (const each of drawn)
        edges[each.exit] = part.kind === "fork" ? { kind: "join", target: exit } : { kind: "to", targets: [exit] };
      return { entry, exit };
    }
    case "loop": {
      const inner = drawPart(part.part, edges, names);
      const again = createName();
      const exit = createName();
      edges[inner.exit] = { kind: "to", targets: [again] };
      edges[again] = { kind: "route", targets: [inner.entry, exit] };
      return { entry: inner.entry, exit };
    }
    case "fan": {
      const entry = createName();
      const each = createName("T");
      const inner = drawPart(part.part, edges, names);
      edges[entry] = { kind: "fanOut", target: each, otherwise: inner.entry };
      edges[each] = { kind: "to", targets: [inner.entry] };
      return { entry, exit: inner.exit };
    }
  }
}

/** Arbitrary graphs of a few nodes; many of them do not compile. */
export const anyDescriptions: fc.Arbitrary<GraphDescription> = fc
  .record({ plain: fc.integer({ min: 2, max: 5 }), tasks: fc.integer({ min: 0, max: 1 }) })
  .chain(({ plain, tasks }) => {
    const names = Array.from({ length: plain }, (_, index) => `n${index}`);
    const taking = Array.from({ length: tasks }, (_, index) => `T${index}`);
    const target = fc.constantFrom(...names);
    const end = fc.constantFrom(...names, END);
    const targets = fc.uniqueArray(end, { minLength: 1, maxLength: 3 });
    const edge: fc.Arbitrary<EdgeDescription> = fc.oneof(
      targets.map((each): EdgeDescription => ({ kind: "to", targets: each })),
      targets.map((each): EdgeDescription => ({ kind: "route", targets: each })),
      targets.map((each): EdgeDescription => ({ kind: "some", targets: each })),
      fc
        .uniqueArray(fc.constantFrom(...names, ...taking), { minLength: 1, maxLength: 3 })
        .map((each): EdgeDescription => ({ kind: "commandTargets", targets: each })),
      target.map((each): EdgeDescription => ({ kind: "join", target: each })),
      ...(tasks === 0
        ? []
        : [
            fc
              .record({ target: fc.constantFrom(...taking), otherwise: fc.option(end, { nil: undefined, freq: 4 }) })
              .map(
                ({ target: to, otherwise }): EdgeDescription =>
                  otherwise === undefined ? { kind: "fanOut", target: to } : { kind: "fanOut", target: to, otherwise },
              ),
          ]),
    );
    const drawn = fc
      .record({ edge, deferred: fc.nat(7) })
      .map(({ edge: way, deferred }): EdgeDescription => (deferred === 0 ? { ...way, deferred: true } : way));
    return fc.record(Object.fromEntries([START, ...names, ...taking].map((name) => [name, drawn])));
  });

/** Further properties of a drawn graph. */
export interface DescribedGraphOptions {
  /** Forces the target; undefined leaves the choice to `pick`. */
  readonly lead?: (targets: readonly string[]) => string | undefined;
  readonly defaults?: GraphDefaults<StateTypes, unknown, InterruptShape>;
}

/** Creates a graph from its description; `pick` decides the results of nodes and edges. */
export function createDescribedGraph(
  description: GraphDescription,
  pick: (below: number) => number,
  body: NodeBody = () => undefined,
  { lead = () => undefined, defaults = {} }: DescribedGraphOptions = {},
): Graph {
  const edge = (drawn: EdgeDescription): unknown => {
    switch (drawn.kind) {
      case "to":
        return drawn.targets;
      case "join":
        return join(drawn.target);
      case "commandTargets":
        return commandTargets(...drawn.targets);
      case "route":
        return route(drawn.targets, () => lead(drawn.targets) ?? drawn.targets[pick(drawn.targets.length)] ?? END);
      case "some": {
        const any = (): string[] => drawn.targets.filter(() => pick(2) === 0);
        const choose = (): string[] => {
          const led = lead(drawn.targets);
          return led === undefined ? [drawn.targets[pick(drawn.targets.length)] ?? END, ...any()] : [led];
        };
        return route(drawn.targets, choose, { many: true });
      }
      case "fanOut": {
        const { target, otherwise } = drawn;
        const count = (): number => {
          const led = lead(otherwise === undefined ? [target] : [target, otherwise]);
          return led === undefined ? pick(4) : led === target ? 1 : 0;
        };
        const select = (): unknown[] => Array.from({ length: count() });
        return fanOut(target, select, otherwise === undefined ? {} : { otherwise });
      }
    }
  };
  const nodes = Object.entries(description).flatMap(([name, drawn]) => {
    if (name === START) return [];
    const works = async (_state: unknown, runtime: NodeRuntime): Promise<unknown> => {
      await body(runtime);
      return drawn.kind === "commandTargets" && lead([END]) === undefined ? commands(drawn.targets, pick) : undefined;
    };
    const defer = drawn.deferred === true;
    return [[name, isTask(name) ? inputNode(z.unknown(), works as never, { defer }) : { defer, run: works }]];
  });
  const edges = Object.fromEntries(Object.entries(description).map(([name, drawn]) => [name, edge(drawn)]));
  const options = { name: "drawn", state: defineState({}), interrupts: { ask: z.boolean() }, defaults };
  return defineUntypedGraph(options, Object.fromEntries(nodes), edges);
}

/**
 * Number of choices from each node to the end when every choice takes the shortest way; an edge to several nodes
 * counts as far as its farthest target. Nodes that cannot reach the end are absent.
 */
export function computeDistancesToEnd(description: GraphDescription): ReadonlyMap<string, number> {
  const known = new Map<string, number>([[END, 0]]);
  const getDistance = (target: string): number => known.get(target) ?? Number.POSITIVE_INFINITY;
  const ofEdge = (drawn: EdgeDescription): number => {
    switch (drawn.kind) {
      case "to":
        return Math.max(...drawn.targets.map(getDistance));
      case "join":
        return getDistance(drawn.target);
      case "commandTargets":
        return 0;
      case "route":
      case "some":
        return Math.min(...drawn.targets.map(getDistance));
      case "fanOut":
        return Math.min(getDistance(drawn.target), getDistance(drawn.otherwise ?? drawn.target));
    }
  };
  for (let grown = true; grown; ) {
    grown = false;
    for (const [name, drawn] of Object.entries(description)) {
      const distance = 1 + ofEdge(drawn);
      if (known.has(name) || distance === Number.POSITIVE_INFINITY) continue;
      known.set(name, distance);
      grown = true;
    }
  }
  return known;
}

/** Compiles a description; undefined when it is invalid. */
export function compileDescription(make: () => Graph): Graph | undefined {
  try {
    return make();
  } catch (error) {
    if (isStatewrightError(error, "invalid_graph")) return undefined;
    throw error;
  }
}

/** Body of every node of a drawn graph. */
export type NodeBody = (runtime: NodeRuntime) => unknown;

function isTask(name: string): boolean {
  return name.startsWith("T");
}

/** Returns a command with at most one goto and any number of sends. */
function commands(targets: readonly string[], pick: (below: number) => number): readonly unknown[] {
  const plain = targets.filter((target) => !isTask(target));
  const chosen = plain[pick(plain.length + 1)];
  const sent = targets.filter(isTask).flatMap((target) => Array.from({ length: pick(3) }, () => send(target, 0)));
  return [...(chosen === undefined ? [] : [goto(chosen)]), ...sent];
}
