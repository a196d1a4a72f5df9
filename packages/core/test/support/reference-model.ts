/**
 * Reference model: a naive interpreter of graph descriptions that follows the rules literally, without a store, a
 * machine or a promise. Tests compare the engine with it.
 */
import { END } from "../../src/index.ts";

/** State of every described graph. */
export interface ModelState {
  readonly log: readonly string[];
  readonly sum: number;
  readonly marks: Readonly<Record<string, number>>;
  readonly last: number;
  /** Ephemeral channel, visible for one superstep. */
  readonly flash?: number | undefined;
}

export type ModelEdge =
  | { readonly kind: "to"; readonly targets: readonly string[] }
  | { readonly kind: "route"; readonly targets: readonly string[]; readonly many: boolean; readonly seed: number }
  | { readonly kind: "fanOut"; readonly target: string; readonly otherwise?: string; readonly seed: number }
  | { readonly kind: "commandTargets"; readonly targets: readonly string[]; readonly seed: number }
  | { readonly kind: "join"; readonly target: string };

export interface ModelNode {
  readonly name: string;
  readonly kind: "plain" | "task" | "inner";
  readonly defer: boolean;
  readonly seed: number;
  readonly edge: ModelEdge;
  /** Further writes next to log, sum and mark. */
  readonly writes: readonly ("last" | "flash" | "overwrite" | "again")[];
  /** Interrupts of the node, raised one after the other. */
  readonly asks: number;
  readonly inner?: { readonly graph: ModelGraph; readonly persistence: "per-call" | "per-thread" | "none" };
}

/** Nodes in declaration order. */
export interface ModelGraph {
  readonly nodes: readonly ModelNode[];
  readonly start: ModelEdge;
}

/** Overwrite of the log. */
export interface Overwrite {
  readonly over: readonly string[];
}

export interface ModelWrite {
  readonly log?: readonly string[] | Overwrite;
  readonly sum?: number;
  readonly marks?: Readonly<Record<string, number | undefined>>;
  readonly last?: number;
  readonly flash?: number;
}

export type ModelCommand = { readonly goto: string } | { readonly send: string; readonly input: number };

/** Return value of a body. */
export interface BodyReturn {
  readonly writes: readonly ModelWrite[];
  readonly commands: readonly ModelCommand[];
}

/** Committed superstep: the nodes of its tasks and of the next tasks, in order, and the resulting state. */
export interface ModelStep {
  readonly state: ModelState;
  readonly tasks: readonly string[];
  readonly next: readonly string[];
}

export interface ModelOutcome {
  readonly state: ModelState;
  readonly steps: readonly ModelStep[];
  /** Executed bodies, including those of subgraphs. */
  readonly bodies: number;
  readonly error?: string;
}

export const emptyState: ModelState = { log: [], sum: 0, marks: {}, last: 0 };

/** Hashes its arguments to a number. */
export function hash(...parts: readonly (string | number | undefined)[]): number {
  let value = 2_166_136_261;
  for (const letter of parts.join("|")) value = Math.imul(value ^ letter.charCodeAt(0), 16_777_619);
  value = Math.imul(value ^ (value >>> 15), 0x2c_1b_3c_6d);
  return (value ^ (value >>> 12)) >>> 0;
}

/** Interrupt payload, unique per interrupt. */
export function createPayload(
  path: string,
  node: string,
  state: ModelState,
  input: number | undefined,
  nth: number,
): string {
  return [path, node, state.log.length, input ?? "-", nth].join("|");
}

/** Answer to an interrupt. */
export function createAnswer(question: string): number {
  return hash(question) % 1_000;
}

/** Computes the return value of a body from state, input and answers. */
export function computeReturn(
  node: ModelNode,
  state: ModelState,
  input: number | undefined,
  answers: readonly number[],
): BodyReturn {
  const chance = hash("body", node.seed, digest(state), input, ...answers);
  const does = (what: ModelNode["writes"][number]): boolean => node.writes.includes(what);
  const entry = `${node.name}(${input ?? ""})@${state.log.length}#${answers.join()}`;
  const mark = { [`k${chance % 4}`]: chance % 5 === 0 ? undefined : chance % 11 };
  return {
    writes: [
      ...(does("overwrite") && chance % 4 === 0 ? [{ log: { over: [`over by ${node.name}`] } }] : []),
      { log: [entry], sum: chance % 7, marks: mark },
      ...(does("again") ? [{ log: [`${node.name} again`], sum: 1 }] : []),
      ...(does("last") && chance % 3 !== 0 ? [{ last: chance % 100 }] : []),
      ...(does("flash") && chance % 2 === 0 ? [{ flash: chance % 10 }] : []),
    ],
    commands: node.edge.kind === "commandTargets" ? listCommands(node.edge, state, input) : [],
  };
}

/** Creates a command with at most one goto and any number of sends. */
function listCommands(
  edge: Extract<ModelEdge, { kind: "commandTargets" }>,
  state: ModelState,
  input: number | undefined,
): readonly ModelCommand[] {
  const commands: ModelCommand[] = [];
  const count = hash("count", edge.seed, digest(state), input) % 3;
  for (let nth = 0; nth < count; nth++) {
    const target = edge.targets[hash("target", nth, edge.seed, digest(state), input) % edge.targets.length] ?? END;
    if (target.startsWith("t")) commands.push({ send: target, input: hash("input", nth, digest(state)) % 9 });
    else if (!commands.some((command) => "goto" in command)) commands.push({ goto: target });
  }
  return commands;
}

/** Target of a route. */
export function chooseTarget(
  { targets, many, seed }: Extract<ModelEdge, { kind: "route" }>,
  state: ModelState,
): readonly string[] {
  const chance = hash("route", seed, digest(state));
  const first = targets[chance % targets.length] ?? END;
  const picked = many ? targets.filter((_, index) => ((chance >> index) & 1) === 1).reverse() : [];
  return picked.length === 0 ? [first] : picked;
}

/** Sends of a fan-out edge. */
export function selectSends({ seed }: Extract<ModelEdge, { kind: "fanOut" }>, state: ModelState): readonly number[] {
  const chance = hash("sends", seed, digest(state));
  return Array.from({ length: chance % 4 }, (_, index) => hash("item", index, chance) % 9);
}

function digest({ log, sum, last, flash, marks }: ModelState): string {
  return [log.length, sum, last, flash ?? "-", Object.keys(marks).length].join(";");
}

/** Input of a subgraph and the return value of its node. */
export const innerMapping = {
  input: (state: ModelState): { readonly sum: number } => ({ sum: state.sum }),
  output: (node: string, inner: ModelState): ModelWrite => ({
    log: [`${node}{${inner.log.join()}}`],
    sum: inner.sum % 5,
  }),
};

class Failure extends Error {
  readonly code: string;
  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

interface ModelTask {
  readonly node: ModelNode;
  readonly input?: number;
}

/** Control state after a superstep. */
interface Position {
  readonly tasks: readonly ModelTask[];
  /** Completed sources by join target. */
  readonly arrived: ReadonlyMap<string, ReadonlySet<string>>;
  readonly heldNodes: ReadonlySet<string>;
  readonly heldSends: readonly ModelTask[];
}

interface Ended {
  readonly node: ModelNode | undefined;
  readonly edge: ModelEdge;
  readonly commands: readonly ModelCommand[];
}

/** Runs a described graph to its end. `kept` holds the state of persistent subgraphs across calls. */
export function interpret(
  graph: ModelGraph,
  maxSteps: number,
  given: Partial<ModelState> = {},
  innerStates: Map<string, ModelState> = new Map(),
  path = "",
): ModelOutcome {
  const steps: ModelStep[] = [];
  let state: ModelState = { ...emptyState, ...given };
  let bodies = 0;

  function run({ node, input }: ModelTask): BodyReturn {
    if (node.inner === undefined) {
      bodies++;
      const asked = Array.from({ length: node.asks }, (_, nth) =>
        createAnswer(createPayload(path, node.name, state, input, nth)),
      );
      return computeReturn(node, state, input, asked);
    }
    const { graph: inner, persistence } = node.inner;
    const keeps = persistence === "per-thread";
    const before = keeps ? innerStates.get(node.name) : undefined;
    const below = keeps ? listInnerStates(innerStates, node.name) : new Map<string, ModelState>();
    const called = { ...before, ...innerMapping.input(state) };
    const outcome = interpret(inner, maxSteps, called, below, `${path}/${node.name}`);
    bodies += outcome.bodies;
    if (outcome.error !== undefined) throw new Failure(outcome.error);
    const { flash: _gone, ...left } = outcome.state;
    if (keeps) keep(innerStates, node.name, left, below);
    return { writes: [innerMapping.output(node.name, outcome.state)], commands: [] };
  }

  try {
    const nothing = { arrived: new Map(), heldNodes: new Set<string>(), heldSends: [] };
    let position = advanceState(graph, nothing, [{ node: undefined, edge: graph.start, commands: [] }], state);
    while (position.tasks.length > 0) {
      if (steps.length >= maxSteps) throw new Failure("step_limit");
      const { tasks } = position;
      const results = tasks.map(run);
      const folded = fold(state, results);
      const ended = tasks.map(({ node }, index) => ({
        node,
        edge: node.edge,
        commands: results[index]?.commands ?? [],
      }));
      position = advanceState(graph, position, ended, folded);
      steps.push({ state: folded, tasks: tasks.map(getName), next: position.tasks.map(getName) });
      state = folded;
    }
    return { state, steps, bodies };
  } catch (error) {
    if (error instanceof Failure) return { state, steps, bodies, error: error.code };
    throw error;
  }
}

const getName = ({ node }: ModelTask): string => node.name;

function listInnerStates(innerStates: ReadonlyMap<string, ModelState>, node: string): Map<string, ModelState> {
  const above = `${node}.`;
  return new Map(
    [...innerStates]
      .filter(([name]) => name.startsWith(above))
      .map(([name, state]) => [name.slice(above.length), state]),
  );
}

function keep(
  innerStates: Map<string, ModelState>,
  node: string,
  state: ModelState,
  below: ReadonlyMap<string, ModelState>,
): void {
  innerStates.set(node, state);
  for (const [name, inner] of below) innerStates.set(`${node}.${name}`, inner);
}

/** Writes of a superstep in task order. */
function fold(before: ModelState, results: readonly BodyReturn[]): ModelState {
  const writers = (channel: keyof ModelWrite): number =>
    results.filter(({ writes }) => writes.some((write) => write[channel] !== undefined)).length;
  const all = results.flatMap(({ writes }) => writes);
  const bases = all.flatMap(({ log }) => (log !== undefined && "over" in log ? [log.over] : []));
  if (writers("last") > 1 || writers("flash") > 1 || bases.length > 1) throw new Failure("channel_conflict");
  const marks: Record<string, number> = { ...before.marks };
  for (const [key, value] of all.flatMap((write) => Object.entries(write.marks ?? {})))
    if (value === undefined) delete marks[key];
    else marks[key] = value;
  return {
    log: [...(bases[0] ?? before.log), ...all.flatMap(({ log }) => (log === undefined || "over" in log ? [] : log))],
    sum: all.reduce((sum, write) => sum + (write.sum ?? 0), before.sum),
    marks,
    last: all.find((write) => write.last !== undefined)?.last ?? before.last,
    flash: all.find((write) => write.flash !== undefined)?.flash,
  };
}

/**
 * Computes the control state after these tasks. An edge belongs to its node and is taken once; commands belong to a
 * task.
 */
function advanceState(
  graph: ModelGraph,
  before: Omit<Position, "tasks">,
  ended: readonly Ended[],
  state: ModelState,
): Position {
  const named = (name: string): ModelNode => graph.nodes.find((node) => node.name === name) as ModelNode;
  const fired = new Set<string>();
  const sent: ModelTask[] = [];
  const arrived = new Map([...before.arrived].map(([target, sources]) => [target, new Set(sources)]));
  const left = new Set<string>();
  for (const { node, edge, commands } of ended) {
    const again = node !== undefined && left.has(node.name);
    if (node !== undefined) left.add(node.name);
    if (edge.kind === "commandTargets") {
      for (const command of commands)
        if ("goto" in command) fired.add(command.goto);
        else sent.push({ node: named(command.send), input: command.input });
    } else if (again) continue;
    else if (edge.kind === "to") for (const target of edge.targets) fired.add(target);
    else if (edge.kind === "route") for (const target of chooseTarget(edge, state)) fired.add(target);
    else if (edge.kind === "join")
      arrived.set(edge.target, (arrived.get(edge.target) ?? new Set()).add(node?.name ?? ""));
    else {
      const items = selectSends(edge, state);
      if (items.length === 0 && edge.otherwise === undefined) throw new Failure("empty_fan_out");
      if (items.length === 0 && edge.otherwise !== undefined) fired.add(edge.otherwise);
      for (const input of items) sent.push({ node: named(edge.target), input });
    }
  }
  for (const target of new Set(graph.nodes.flatMap(({ edge }) => (edge.kind === "join" ? [edge.target] : [])))) {
    const sources = graph.nodes.filter(({ edge }) => edge.kind === "join" && edge.target === target);
    if (!sources.every(({ name }) => arrived.get(target)?.has(name))) continue;
    fired.add(target);
    arrived.delete(target);
  }
  const inOrder = (names: ReadonlySet<string>, deferred: boolean): ModelTask[] =>
    graph.nodes.filter(({ name, defer }) => names.has(name) && defer === deferred).map((node) => ({ node }));
  const runnable = [...inOrder(fired, false), ...sent.filter(({ node }) => !node.defer)];
  const heldNodes = new Set([...before.heldNodes, ...inOrder(fired, true).map(getName)]);
  const heldSends = [...before.heldSends, ...sent.filter(({ node }) => node.defer)];
  if (runnable.length > 0) return { tasks: runnable, arrived, heldNodes, heldSends };
  const released = [...inOrder(heldNodes, true), ...heldSends];
  if (released.length === 0 && arrived.size > 0) throw new Failure("dead_route");
  return { tasks: released, arrived, heldNodes: new Set(), heldSends: [] };
}
