/** Random graph descriptions for the reference model, and the graphs built from them. */
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineState,
  END,
  fanOut,
  type Graph,
  goto,
  inputNode,
  join,
  overwrite,
  route,
  START,
  send,
  subgraph,
} from "../../src/index.ts";
import { defineUntypedGraph, toUntyped } from "./from-javascript.ts";
import {
  chooseTarget,
  computeReturn,
  createPayload,
  innerMapping,
  type ModelEdge,
  type ModelGraph,
  type ModelNode,
  type ModelState,
  type ModelWrite,
  selectSends,
} from "./reference-model.ts";

/** Seeded random generator. */
export interface Chance {
  below(limit: number): number;
  share(part: number): boolean;
  of<Item>(items: readonly [Item, ...Item[]]): Item;
  of<Item>(items: readonly Item[]): Item;
}

export function createChance(seed: number): Chance {
  let state = (seed ^ 0x9e_37_79_b9) >>> 0;
  const next = (): number => {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  return {
    below: (limit) => Math.floor(next() * limit),
    share: (part) => next() < part,
    of: <Item>(items: readonly Item[]): Item => items[Math.floor(next() * items.length)] as Item,
  };
}

/** Features of the described graphs. */
export interface Traits {
  readonly asks?: boolean;
  readonly inner?: boolean;
}

/** Creates a description: plain nodes `n…`, some of them subgraphs, input nodes `t…`; some descriptions have loops. */
export function createRandomDescription(seed: number, traits: Traits, depth = 0): ModelGraph {
  const chance = createChance(seed);
  const plain = Array.from({ length: 2 + chance.below(5) }, (_, index) => `n${index}`);
  const tasks = Array.from({ length: chance.below(3) }, (_, index) => `t${index}`);
  const names = shuffled(chance, [...plain, ...tasks]);
  const loops = depth === 0 && chance.share(0.6);
  const conflicts = chance.share(0.15);
  const joined = chance.share(0.25) ? [] : [chance.of(plain), chance.of(plain)].slice(0, 1 + chance.below(2));
  const joining = chance.of([0.1, 0.25, 0.5]);
  const getSeed = (): number => chance.below(1_000_000);
  const pickSome = (of: readonly string[], most: number): readonly string[] => [
    ...new Set(Array.from({ length: 1 + chance.below(most) }, () => chance.of(of))),
  ];

  function createEdgeFrom(index: number, commands: boolean): ModelEdge {
    const pickAhead = (of: readonly string[]): readonly string[] =>
      loops ? of : of.filter((name) => names.indexOf(name) > index);
    const [nodes, sendable, joins] = [pickAhead(plain), pickAhead(tasks), index < 0 ? [] : pickAhead(joined)];
    if (nodes.length === 0) return { kind: "to", targets: [END] };
    if (index < 0 && chance.share(0.4)) return { kind: "to", targets: pickSome(nodes, 4) };
    const dice = chance.below(100);
    if (sendable.length > 0 && dice < 25) {
      const otherwise = chance.share(0.85) ? { otherwise: chance.of([...nodes, END]) } : {};
      return { kind: "fanOut", target: chance.of(sendable), ...otherwise, seed: getSeed() };
    }
    if (commands && dice < 40)
      return { kind: "commandTargets", targets: pickSome([...nodes, ...sendable, END], 4), seed: getSeed() };
    if (dice < 55) {
      const targets = new Set([...pickSome(nodes, 3), ...(chance.share(0.6) ? [END] : [])]);
      return { kind: "route", targets: [...targets], many: chance.share(0.5), seed: getSeed() };
    }
    if (joins.length > 0 && chance.share(joining)) return { kind: "join", target: chance.of(joins) };
    return { kind: "to", targets: dice < 92 ? pickSome(nodes, 3) : [END] };
  }

  const nodes = names.map((name, index): ModelNode => {
    const inner = traits.inner === true && depth < 2 && name.startsWith("n") && chance.share(0.3);
    const kind = name.startsWith("t") ? "task" : inner ? "inner" : "plain";
    const base = {
      name,
      kind,
      defer: chance.share(0.15),
      seed: getSeed(),
      edge: createEdgeFrom(index, !inner),
    } as const;
    if (inner) {
      const persistence = chance.of(traits.asks === true ? (["per-call", "per-thread"] as const) : persistences);
      return {
        ...base,
        writes: [],
        asks: 0,
        inner: { graph: createRandomDescription(chance.below(2 ** 30), traits, depth + 1), persistence },
      };
    }
    const likely = { last: conflicts ? 0.4 : 0, overwrite: 0.08, flash: 0.15, again: 0.15 };
    const writes = (["last", "overwrite", "flash", "again"] as const).filter((write) => chance.share(likely[write]));
    return { ...base, writes, asks: traits.asks === true && chance.share(0.3) ? 1 + chance.below(2) : 0 };
  });
  const described = { nodes, start: createEdgeFrom(-1, false) };
  return keepReachable(chance.share(0.4) ? withJoin(chance, described, loops) : described);
}

/** Adds a fan-out whose branches meet in a join; one branch is longer when a node is left for it. */
function withJoin(chance: Chance, { nodes, start }: ModelGraph, loops: boolean): ModelGraph {
  const plain = nodes.filter(({ kind }) => kind !== "task").map(({ name }) => name);
  const [fan, one, other, target, between, beyond = END] = plain;
  if (fan === undefined || one === undefined || other === undefined || target === undefined) return { nodes, start };
  const edges: Readonly<Record<string, ModelEdge>> = {
    [fan]: { kind: "to", targets: [one, between ?? other] },
    ...(between === undefined
      ? {}
      : { [between]: { kind: "to", targets: chance.share(0.3) ? [other, one] : [other] } }),
    [one]: { kind: "join", target },
    [other]: { kind: "join", target },
    [target]: loops
      ? { kind: "route", targets: [fan, END], many: false, seed: chance.below(1_000_000) }
      : { kind: "to", targets: [beyond] },
  };
  return {
    nodes: nodes.map((node) => ({ ...node, edge: edges[node.name] ?? node.edge })),
    start: {
      kind: "to",
      targets: [...new Set([fan, ...(start.kind === "to" && chance.share(0.5) ? start.targets : [])])],
    },
  };
}

const persistences = ["per-call", "per-thread", "none"] as const;

function shuffled(chance: Chance, names: readonly string[]): readonly string[] {
  const places = new Map(names.map((name) => [name, chance.below(1_000)]));
  return [...names].sort((one, other) => (places.get(one) ?? 0) - (places.get(other) ?? 0));
}

function keepReachable({ nodes, start }: ModelGraph): ModelGraph {
  const seen = new Set<string>();
  const waiting = [start];
  for (let edge = waiting.pop(); edge !== undefined; edge = waiting.pop())
    for (const name of listTargets(edge)) {
      const node = nodes.find((each) => each.name === name);
      if (node === undefined || seen.has(name)) continue;
      seen.add(name);
      waiting.push(node.edge);
    }
  return { nodes: nodes.filter(({ name }) => seen.has(name)), start };
}

function listTargets(edge: ModelEdge): readonly string[] {
  if (edge.kind === "join") return [edge.target];
  if (edge.kind === "fanOut") return [edge.target, ...(edge.otherwise === undefined ? [] : [edge.otherwise])];
  return edge.targets;
}

const state = defineState({
  log: channel.list(z.string()),
  sum: channel.reduce(z.number().default(0), (sum: number, more: number) => sum + more),
  marks: channel.record(z.number()),
  last: z.number().default(0),
  flash: channel.ephemeral(z.number()),
});

const answer = z.object({ to: z.string(), value: z.number() });

/** Hooks of a test into node bodies. */
export interface Probe {
  /** Runs before a body: may wait, throw or never settle. */
  readonly before?: () => Promise<void>;
  /** Runs after a body has completed. */
  readonly ended?: () => void;
}

interface Runtime {
  readonly input?: number;
  readonly interrupt: (key: string, shown: { payload: string }) => Promise<z.infer<typeof answer>>;
}

/** Builds the described graph. Throws `invalid_graph` when the description is not sound. */
export function buildGraph(described: ModelGraph, probe: Probe = {}, name = "described", path = ""): Graph {
  const body =
    (node: ModelNode) =>
    async (before: ModelState, { input, interrupt }: Runtime) => {
      await probe.before?.();
      const answers: number[] = [];
      for (let nth = 0; nth < node.asks; nth++) {
        const payload = createPayload(path, node.name, before, input, nth);
        const { to, value } = await interrupt(`q${nth}`, { payload });
        if (to !== payload) throw new Error(`the answer to ${to} was given to ${payload}`);
        answers.push(value);
      }
      const { writes, commands } = computeReturn(node, before, input, answers);
      probe.ended?.();
      return [
        ...writes.map(asUpdate),
        ...commands.map((command) => ("goto" in command ? goto(command.goto) : send(command.send, command.input))),
      ];
    };
  const createNode = (node: ModelNode): unknown => {
    const { kind, defer, inner } = node;
    if (kind === "task") return toUntyped(inputNode)(z.number(), body(node), { defer });
    if (inner === undefined) return { run: body(node), defer };
    const graph = buildGraph(inner.graph, probe, `${name}_${node.name}`, `${path}/${node.name}`);
    const output = (out: ModelState) => innerMapping.output(node.name, out);
    const mapping = { input: innerMapping.input, output, persistence: inner.persistence };
    return { run: toUntyped<unknown>(subgraph)(graph, mapping), defer };
  };
  const nodes = Object.fromEntries(described.nodes.map((node) => [node.name, createNode(node)]));
  const edges = Object.fromEntries(described.nodes.map((node) => [node.name, createEdge(node.edge)]));
  const asks = described.nodes.some((node) => node.asks > 0);
  const interrupts = asks ? { q0: answer, q1: answer } : {};
  return defineUntypedGraph({ name, state, interrupts }, nodes, { [START]: createEdge(described.start), ...edges });
}

function asUpdate({ log, ...write }: ModelWrite): object {
  if (log === undefined) return write;
  return { ...write, log: "over" in log ? overwrite(log.over) : log };
}

function createEdge(edge: ModelEdge): unknown {
  switch (edge.kind) {
    case "to":
      return edge.targets;
    case "join":
      return join(edge.target);
    case "commandTargets":
      return commandTargets(...edge.targets);
    case "route": {
      const choose = (now: ModelState) => (edge.many ? chooseTarget(edge, now) : chooseTarget(edge, now)[0]);
      return toUntyped(route)(edge.targets, choose, { many: edge.many });
    }
    case "fanOut": {
      const { target, otherwise } = edge;
      return fanOut(target, (now: ModelState) => selectSends(edge, now), otherwise === undefined ? {} : { otherwise });
    }
  }
}
