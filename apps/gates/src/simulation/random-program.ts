/** Random programs: small graphs of everything that the engine keeps apart, described as plain data. */
import { type Chance, chanceOf } from "@statewright/testing";

export interface StepSpec {
  readonly key: string;
  readonly effect: "pure" | "idempotent" | "once";
}

/** One node, and what its body does, in this order: steps, questions, later steps, a failure in the first attempts. */
export interface NodeSpec {
  readonly kind: "node";
  readonly name: string;
  readonly before: readonly StepSpec[];
  /** Whether the first steps run at the same time. */
  readonly atOnce: boolean;
  readonly asks: readonly ("q" | "late")[];
  /** They are asked together, in the order in which steps have ended that differs from life to life. */
  readonly asksApart: boolean;
  readonly after: readonly StepSpec[];
  /** So many attempts of each life fail; a retry policy allows one more. */
  readonly failures: number;
  /** The body always fails, and its handler answers. */
  readonly handled: boolean;
  readonly defer: boolean;
  /** The body as a whole may happen once. */
  readonly once: boolean;
  readonly writes: "log" | "draft" | "again";
}

/** A graph as a node. */
export interface InnerSpec {
  readonly kind: "inner";
  readonly name: string;
  readonly persistence: "per-call" | "kept" | "none";
  readonly blocks: readonly BlockSpec[];
}

export type PartSpec = NodeSpec | InnerSpec;

export interface CallSpec {
  readonly tool: "pure" | "idempotent" | "once" | "asked" | "flaky" | "writer";
  readonly approve: "no" | "yes" | "refused";
}

/** A part of a graph: control comes in at its first node and leaves to the next part. */
export type BlockSpec =
  | { readonly kind: "part"; readonly part: PartSpec }
  | { readonly kind: "fan"; readonly name: string; readonly items: number; readonly part: NodeSpec }
  | { readonly kind: "parallel"; readonly name: string; readonly parts: readonly PartSpec[] }
  | { readonly kind: "loop"; readonly name: string; readonly part: PartSpec; readonly times: number }
  | { readonly kind: "goto"; readonly name: string; readonly part: NodeSpec }
  | {
      readonly kind: "agent";
      readonly name: string;
      /** The calls of each answer of the model; it ends with words. */
      readonly rounds: readonly (readonly CallSpec[])[];
      readonly strategy: "parallel" | "sequential" | { readonly batch: number };
    };

export interface ProgramSpec {
  readonly blocks: readonly BlockSpec[];
  /** Where another way begins when the run is done. */
  readonly forkAt?: number;
}

interface Traits {
  readonly depth: number;
  /** Nothing of it is saved. */
  readonly unsaved: boolean;
  /** Steps that may happen once: after a death nobody can say whether they did, and the run ends there. */
  readonly onceSteps: boolean;
  /** A call of an inner graph has no name outside by which its `once` nodes could be told from those of the next call. */
  readonly onceNodes: boolean;
  readonly name: (stem: string) => string;
}

/** The program of a seed. */
export function randomProgram(seed: number): ProgramSpec {
  const chance = chanceOf(seed);
  const counts = new Map<string, number>();
  const name = (stem: string): string => {
    const nth = (counts.get(stem) ?? 0) + 1;
    counts.set(stem, nth);
    return `${stem}${nth}`;
  };
  const traits = { depth: 0, unsaved: false, onceSteps: chance.share(0.1), onceNodes: true, name };
  const blocks = randomBlocks(chance, traits);
  return { blocks, ...(chance.share(0.3) ? { forkAt: chance.below(100) / 100 } : {}) };
}

function randomBlocks(chance: Chance, traits: Traits): readonly BlockSpec[] {
  const most = traits.depth === 0 ? 3 : 2;
  return Array.from({ length: 1 + chance.below(most) }, () => randomBlock(chance, traits));
}

function randomBlock(chance: Chance, traits: Traits): BlockSpec {
  const { name } = traits;
  const dice = chance.below(100);
  if (dice < 20) return { kind: "part", part: randomPart(chance, traits, true) };
  if (dice < 35)
    return { kind: "fan", name: name("fan"), items: 1 + chance.below(3), part: randomNode(chance, traits) };
  if (dice < 57) {
    const parts = Array.from({ length: 2 + chance.below(2) }, () => randomPart(chance, traits));
    return { kind: "parallel", name: name("par"), parts };
  }
  if (dice < 65)
    return {
      kind: "loop",
      name: name("loop"),
      part: randomPart(chance, { ...traits, onceNodes: false }, true),
      times: 1 + chance.below(2),
    };
  if (dice < 70) return { kind: "goto", name: name("goto"), part: randomNode(chance, traits, true) };
  return {
    kind: "agent",
    name: name("agent"),
    rounds: Array.from({ length: 1 + chance.below(2) }, () =>
      Array.from({ length: 1 + chance.below(3) }, () => randomCall(chance, traits)),
    ),
    strategy: chance.of(["parallel", "parallel", "sequential", { batch: 2 }] as const),
  };
}

function randomPart(chance: Chance, traits: Traits, alone = false): PartSpec {
  if (traits.depth >= 2 || !chance.share(traits.depth === 0 ? 0.25 : 0.12)) return randomNode(chance, traits, alone);
  const persistence = traits.unsaved ? "none" : chance.of(["per-call", "per-call", "kept", "none"] as const);
  const inside = { ...traits, depth: traits.depth + 1, unsaved: persistence === "none" };
  return { kind: "inner", name: traits.name("inner"), persistence, blocks: randomBlocks(chance, inside) };
}

/** Only a node that runs `alone` may write a channel that keeps one value. */
function randomNode(chance: Chance, traits: Traits, alone = false): NodeSpec {
  const saved = !traits.unsaved;
  const name = traits.name("node");
  const once = saved && (traits.onceNodes || traits.depth === 0) && chance.share(0.15);
  const handled = !once && chance.share(0.1);
  const steps = (most: number): readonly StepSpec[] =>
    Array.from({ length: chance.below(most + 1) }, () => ({
      key: traits.name("step"),
      effect:
        saved && !handled && traits.onceSteps && chance.share(0.3)
          ? "once"
          : chance.of(["pure", "idempotent"] as const),
    }));
  const asks = !once && saved && chance.share(0.2);
  return {
    kind: "node",
    name,
    before: once ? [] : steps(2),
    atOnce: chance.share(0.4),
    asks: asks ? Array.from({ length: 1 + chance.below(2) }, () => (chance.share(0.8) ? "q" : "late")) : [],
    asksApart: asks && chance.share(0.4),
    after: once ? [] : steps(1),
    failures: !once && chance.share(0.2) ? 1 + chance.below(2) : 0,
    handled,
    defer: chance.share(0.1),
    once,
    writes: alone ? chance.of(["log", "draft", "again"] as const) : chance.of(["log", "again"] as const),
  };
}

function randomCall(chance: Chance, { unsaved }: Traits): CallSpec {
  const tool = unsaved
    ? chance.of(["pure", "idempotent", "flaky", "writer"] as const)
    : chance.of(["pure", "idempotent", "once", "once", "asked", "asked", "flaky", "writer"] as const);
  const approve = unsaved || !chance.share(0.15) ? "no" : chance.share(0.7) ? "yes" : "refused";
  return { tool, approve };
}
