/** Random programs: small graphs with all features of the engine, described as plain data. */
import { type Chance, createChance } from "@statewright/testing";

export interface StepSpec {
  readonly key: string;
  readonly effect: "pure" | "idempotent" | "once";
}

/** Node. Its body does, in order: steps, interrupts, later steps; failures of the first attempts occur in between. */
export interface NodeSpec {
  readonly kind: "node";
  readonly name: string;
  readonly before: readonly StepSpec[];
  /** True for concurrent first steps. */
  readonly parallelSteps: boolean;
  readonly interrupts: readonly ("q" | "late")[];
  /** True for concurrent interrupts, raised in the order in which their steps end, which differs between processes. */
  readonly shuffledInterrupts: boolean;
  readonly after: readonly StepSpec[];
  /** Number of failing attempts per process; the retry policy allows one more attempt. */
  readonly failures: number;
  /** True for a body that always fails, with an error handler. */
  readonly hasErrorHandler: boolean;
  readonly defer: boolean;
  /** True for a `once` node. */
  readonly once: boolean;
  readonly writes: "log" | "draft" | "again";
}

/** Subgraph node. */
export interface InnerSpec {
  readonly kind: "inner";
  readonly name: string;
  readonly persistence: "per-call" | "per-thread" | "none";
  readonly blocks: readonly BlockSpec[];
}

export type PartSpec = NodeSpec | InnerSpec;

export interface CallSpec {
  readonly tool: "pure" | "idempotent" | "once" | "asked" | "flaky" | "writer";
  readonly approve: "no" | "yes" | "refused";
}

/** Part of a graph: control enters at its first node and leaves to the next part. */
export type BlockSpec =
  | { readonly kind: "part"; readonly part: PartSpec }
  | { readonly kind: "fan"; readonly name: string; readonly items: number; readonly part: NodeSpec }
  | { readonly kind: "parallel"; readonly name: string; readonly parts: readonly PartSpec[] }
  | { readonly kind: "loop"; readonly name: string; readonly part: PartSpec; readonly times: number }
  | { readonly kind: "goto"; readonly name: string; readonly part: NodeSpec }
  | {
      readonly kind: "agent";
      readonly name: string;
      /** Tool calls of each model reply; the last reply is a text. */
      readonly rounds: readonly (readonly CallSpec[])[];
      readonly strategy: "parallel" | "sequential" | { readonly batch: number };
    };

export interface ProgramSpec {
  readonly blocks: readonly BlockSpec[];
  /** Position of a fork after the end of the run. */
  readonly forkAt?: number;
}

interface Traits {
  readonly depth: number;
  /** True inside a subgraph without persistence. */
  readonly unsaved: boolean;
  /** True if steps may be `once`. The outcome of such a step is unknown after a crash, and the run ends. */
  readonly onceSteps: boolean;
  /** True if nodes may be `once`. In a loop, a subgraph call has no stable external key for its `once` nodes. */
  readonly onceNodes: boolean;
  /** True if no other node runs in the same superstep: only such a node may write a last-value channel. */
  readonly alone: boolean;
  readonly createName: (stem: string) => string;
}

/** Creates the program of a seed. */
export function createRandomProgram(seed: number): ProgramSpec {
  const chance = createChance(seed);
  const counts = new Map<string, number>();
  const createName = (stem: string): string => {
    const nth = (counts.get(stem) ?? 0) + 1;
    counts.set(stem, nth);
    return `${stem}${nth}`;
  };
  const traits = { depth: 0, unsaved: false, onceSteps: chance.flip(0.1), onceNodes: true, alone: false, createName };
  const blocks = createBlocks(chance, traits);
  return { blocks, ...(chance.flip(0.3) ? { forkAt: chance.getInteger(100) / 100 } : {}) };
}

function createBlocks(chance: Chance, traits: Traits): readonly BlockSpec[] {
  const maxBlocks = traits.depth === 0 ? 3 : 2;
  return Array.from({ length: 1 + chance.getInteger(maxBlocks) }, () => createBlock(chance, traits));
}

function createBlock(chance: Chance, traits: Traits): BlockSpec {
  const { createName } = traits;
  const roll = chance.getInteger(100);
  if (roll < 20) return { kind: "part", part: createPart(chance, { ...traits, alone: true }) };
  if (roll < 35)
    return { kind: "fan", name: createName("fan"), items: 1 + chance.getInteger(3), part: createNode(chance, traits) };
  if (roll < 57) {
    const parts = Array.from({ length: 2 + chance.getInteger(2) }, () => createPart(chance, traits));
    return { kind: "parallel", name: createName("par"), parts };
  }
  if (roll < 65)
    return {
      kind: "loop",
      name: createName("loop"),
      part: createPart(chance, { ...traits, onceNodes: false, alone: true }),
      times: 1 + chance.getInteger(2),
    };
  if (roll < 70)
    return { kind: "goto", name: createName("goto"), part: createNode(chance, { ...traits, alone: true }) };
  return {
    kind: "agent",
    name: createName("agent"),
    rounds: Array.from({ length: 1 + chance.getInteger(2) }, () =>
      Array.from({ length: 1 + chance.getInteger(3) }, () => createCall(chance, traits)),
    ),
    strategy: chance.pick(["parallel", "parallel", "sequential", { batch: 2 }] as const),
  };
}

function createPart(chance: Chance, traits: Traits): PartSpec {
  if (traits.depth >= 2 || !chance.flip(traits.depth === 0 ? 0.25 : 0.12)) return createNode(chance, traits);
  const persistence = traits.unsaved ? "none" : chance.pick(["per-call", "per-call", "per-thread", "none"] as const);
  const innerTraits = { ...traits, alone: false, depth: traits.depth + 1, unsaved: persistence === "none" };
  return { kind: "inner", name: traits.createName("inner"), persistence, blocks: createBlocks(chance, innerTraits) };
}

function createNode(chance: Chance, traits: Traits): NodeSpec {
  const saved = !traits.unsaved;
  const name = traits.createName("node");
  const once = saved && (traits.onceNodes || traits.depth === 0) && chance.flip(0.15);
  const alwaysFails = !once && chance.flip(0.1);
  const createSteps = (maxSteps: number): readonly StepSpec[] =>
    Array.from({ length: chance.getInteger(maxSteps + 1) }, () => ({
      key: traits.createName("step"),
      effect:
        saved && !alwaysFails && traits.onceSteps && chance.flip(0.3)
          ? "once"
          : chance.pick(["pure", "idempotent"] as const),
    }));
  const hasInterrupts = !once && saved && chance.flip(0.2);
  return {
    kind: "node",
    name,
    before: once ? [] : createSteps(2),
    parallelSteps: chance.flip(0.4),
    interrupts: hasInterrupts
      ? Array.from({ length: 1 + chance.getInteger(2) }, () => (chance.flip(0.8) ? "q" : "late"))
      : [],
    shuffledInterrupts: hasInterrupts && chance.flip(0.4),
    after: once ? [] : createSteps(1),
    failures: !once && chance.flip(0.2) ? 1 + chance.getInteger(2) : 0,
    hasErrorHandler: alwaysFails,
    defer: chance.flip(0.1),
    once,
    writes: traits.alone ? chance.pick(["log", "draft", "again"] as const) : chance.pick(["log", "again"] as const),
  };
}

function createCall(chance: Chance, { unsaved }: Traits): CallSpec {
  const tool = unsaved
    ? chance.pick(["pure", "idempotent", "flaky", "writer"] as const)
    : chance.pick(["pure", "idempotent", "once", "once", "asked", "asked", "flaky", "writer"] as const);
  const approve = unsaved || !chance.flip(0.15) ? "no" : chance.flip(0.7) ? "yes" : "refused";
  return { tool, approve };
}
