import fc from "fast-check";
import { END, type Edge, type NodeSpec, type Spec } from "./model.ts";

/** A small deterministic chance. */
export function chanceOf(seed: number): { below(n: number): number; share(p: number): boolean; of<T>(list: readonly T[]): T } {
  let s = (seed ^ 0x9e3779b9) >>> 0;
  const next = (): number => {
    s = (s + 0x6d2b79f5) >>> 0;
    let t = s;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return {
    below: (n) => Math.floor(next() * n),
    share: (p) => next() < p,
    of: (list) => list[Math.floor(next() * list.length)] as never,
  };
}

export interface Traits {
  readonly asks?: boolean;
  readonly subgraphs?: boolean;
  readonly acyclic?: boolean;
  readonly depth?: number;
}

export function specOf(seed: number, traits: Traits = {}): Spec {
  const chance = chanceOf(seed);
  const plain = Array.from({ length: 2 + chance.below(5) }, (_, i) => `n${i}`);
  const tasks = Array.from({ length: chance.below(3) }, (_, i) => `t${i}`);
  const acyclic = traits.acyclic ?? chance.share(0.4);
  const conflicts = chance.share(0.15);
  // Declaration order is a mix.
  const names = [...plain, ...tasks].map((name) => ({ name, at: chance.share(0.5) ? chance.below(100) : 50 })).sort((a, b) => a.at - b.at).map(({ name }) => name);
  const rank = new Map(names.map((name, i) => [name, i]));
  // Few targets, so that joins have several sources; in some graphs none.
  const joined = chance.share(0.25) ? [] : [chance.of(plain), chance.of(plain)].slice(0, 1 + chance.below(2));
  const joining = chance.of([10, 25, 50]);
  const reachable = (list: string[], from: number): string[] => (acyclic ? list.filter((name) => (rank.get(name) as number) > from) : list);
  const edgeFrom = (from: number, commands: boolean): Edge => {
    const p = reachable(plain, from);
    const t = reachable(tasks, from);
    const some = (list: string[], max: number): string[] => [...new Set(Array.from({ length: 1 + chance.below(max) }, () => chance.of(list)))];
    if (p.length === 0) return commands && chance.share(0.1) ? { kind: "gotos", targets: [END], seed: chance.below(1e6) } : { kind: "to", targets: [END] };
    const dice = chance.below(100);
    if (from < 0 && chance.share(0.4)) return { kind: "to", targets: some(p, 4) };
    if (t.length > 0 && dice < 25) return { kind: "sends", target: chance.of(t), ...(chance.share(0.85) ? { otherwise: chance.of([...p, END]) } : {}), seed: chance.below(1e6), max: 1 + chance.below(4) };
    if (commands && dice < 40) return { kind: "gotos", targets: some([...p, ...t, END], 4), seed: chance.below(1e6) };
    if (dice < 55) return { kind: "route", targets: [...new Set([...some(p, 3), ...(chance.share(0.6) ? [END] : [])])], many: chance.share(0.5), seed: chance.below(1e6) };
    const j = reachable(joined, from);
    if (from >= 0 && j.length > 0 && chance.below(100) < joining) return { kind: "join", target: chance.of(j) };
    if (dice < 92) return { kind: "to", targets: some(p, 3) };
    return { kind: "to", targets: [END] };
  };
  const nodes = names.map((name, i): NodeSpec => {
    const kind = name.startsWith("t") ? "task" : traits.subgraphs && chance.share(0.3) ? "sub" : "plain";
    const base = {
      name,
      kind,
      defer: chance.share(0.15),
      seed: chance.below(1e6),
      writesX: conflicts && chance.share(0.4),
      overwrites: chance.share(0.08),
      writesEph: chance.share(0.15),
      list: chance.share(0.15),
      asks: traits.asks && kind !== "sub" && chance.share(0.3) ? 1 + chance.below(2) : 0,
    } as const;
    const edge = edgeFrom(i, kind !== "sub");
    if (kind !== "sub") return { ...base, edge };
    const depth = traits.depth ?? 0;
    return {
      ...base,
      edge,
      writesX: false, overwrites: false, writesEph: false, list: false,
      inner: specOf(chance.below(1e9), { ...traits, acyclic: true, subgraphs: depth < 1, depth: depth + 1 }),
      persistence: traits.asks ? chance.of(["per-call", "kept"] as const) : chance.of(["per-call", "none", "kept"] as const),
    };
  });
  return pruned({ nodes, start: edgeFrom(-1, false) });
}

const targetsOf = (edge: Edge): string[] => (edge.kind === "sends" ? [edge.target, ...(edge.otherwise === undefined ? [] : [edge.otherwise])] : edge.kind === "join" ? [edge.target] : edge.targets);

function pruned(spec: Spec): Spec {
  const seen = new Set<string>();
  const walk = (edge: Edge): void => {
    for (const target of targetsOf(edge))
      if (target !== END && !seen.has(target)) {
        seen.add(target);
        walk((spec.nodes.find(({ name }) => name === target) as NodeSpec).edge);
      }
  };
  walk(spec.start);
  return { nodes: spec.nodes.filter(({ name }) => seen.has(name)), start: spec.start };
}

export const seeds = fc.integer({ min: 0, max: 2 ** 31 - 1 });
