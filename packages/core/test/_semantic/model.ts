/** A naive interpreter of graph semantics, made from the rules alone. */
export interface State {
  log: readonly string[];
  sum: number;
  rec: Readonly<Record<string, number>>;
  x: number;
  eph?: number | undefined;
}
export type Edge =
  | { kind: "to"; targets: string[] }
  | { kind: "route"; targets: string[]; many: boolean; seed: number }
  | { kind: "sends"; target: string; otherwise?: string; seed: number; max: number }
  | { kind: "gotos"; targets: string[]; seed: number }
  | { kind: "join"; target: string };
export interface NodeSpec {
  name: string;
  kind: "plain" | "task" | "sub";
  defer: boolean;
  seed: number;
  /** rare things it does */
  writesX: boolean;
  overwrites: boolean;
  writesEph: boolean;
  list: boolean;
  asks: number;
  edge: Edge;
  inner?: Spec;
  persistence?: "per-call" | "none" | "kept";
}
export interface Spec {
  nodes: NodeSpec[];
  start: Edge;
}
export type Write = Partial<{ log: readonly string[] | { over: readonly string[] }; sum: number; rec: Record<string, number | undefined>; x: number; eph: number }>;
export type Command = { goto: string } | { send: string; input: number };

export const END = "__end__";
export function hash(...parts: (string | number | undefined)[]): number {
  let h = 2166136261;
  for (const ch of parts.join("|")) h = Math.imul(h ^ ch.charCodeAt(0), 16777619);
  h ^= h >>> 15;
  h = Math.imul(h, 0x2c1b3c6d);
  h ^= h >>> 12;
  return h >>> 0;
}
export const digest = (state: State): string => `${state.log.length};${state.sum};${state.x};${state.eph ?? "-"};${Object.keys(state.rec).length}`;

export function bodyOf(node: NodeSpec, state: State, input: number | undefined, answers: readonly number[]): { writes: Write[]; commands: Command[] } {
  const h = hash("body", node.seed, digest(state), input, ...answers);
  const writes: Write[] = [{ log: [`${node.name}${input === undefined ? "" : `(${input})`}@${state.log.length}#${answers.join()}`], sum: h % 7, rec: { [`k${h % 4}`]: h % 5 === 0 ? undefined : h % 11 } }];
  if (node.list) writes.push({ log: [`${node.name}+`], sum: 1 });
  if (node.writesX && h % 3 !== 0) writes.push({ x: h % 100 });
  if (node.writesEph && h % 2 === 0) writes.push({ eph: h % 10 });
  if (node.overwrites && h % 4 === 0) writes.unshift({ log: { over: [`over by ${node.name}`] } });
  const commands: Command[] = [];
  const edge = node.edge;
  if (edge.kind === "gotos") {
    const count = hash("count", edge.seed, digest(state), input) % 3;
    for (let i = 0; i < count; i++) {
      const target = edge.targets[hash("goto", i, edge.seed, digest(state), input) % edge.targets.length] as string;
      if (target.startsWith("t")) commands.push({ send: target, input: hash("in", i, edge.seed, digest(state)) % 9 });
      else if (!commands.some((command) => "goto" in command)) commands.push({ goto: target });
    }
  }
  return { writes, commands };
}
export function chosen(edge: Extract<Edge, { kind: "route" }>, state: State): string[] {
  const h = hash("route", edge.seed, digest(state));
  if (!edge.many) return [edge.targets[h % edge.targets.length] as string];
  const picked = edge.targets.filter((_, i) => (h >> i) & 1);
  return picked.length === 0 ? [edge.targets[0] as string] : picked.reverse();
}
export function items(edge: Extract<Edge, { kind: "sends" }>, state: State): number[] {
  const h = hash("sends", edge.seed, digest(state));
  return Array.from({ length: h % (edge.max + 1) }, (_, i) => hash("item", i, h) % 9);
}

export class Failure extends Error {
  constructor(readonly code: string) {
    super(code);
  }
}
interface Task {
  node: NodeSpec;
  input?: number;
}
export interface Superstep {
  tasks: string[];
  next: string[];
}
export interface Outcome {
  state: State;
  steps: Superstep[];
  error?: string;
}
export const empty: State = { log: [], sum: 0, rec: {}, x: 0 };
export type Answering = (path: string, node: string, logLength: number, input: number | undefined, index: number) => number;

/** What a run of `spec` does. */
export function interpret(spec: Spec, given: Partial<State>, maxSteps: number, kept: Map<string, State> = new Map(), path = "", answering: Answering = (p, n, l, i, k) => hash(p, n, l, i, k) % 1000): Outcome {
  const byName = new Map(spec.nodes.map((node) => [node.name, node]));
  const index = new Map(spec.nodes.map((node, i) => [node.name, i]));
  const sources = new Map<string, Set<string>>();
  for (const node of spec.nodes)
    if (node.edge.kind === "join") sources.set(node.edge.target, (sources.get(node.edge.target) ?? new Set()).add(node.name));
  let state: State = { ...empty, ...given };
  const arrivals = new Map<string, Set<string>>();
  let heldNodes = new Set<string>();
  let heldSends: Task[] = [];
  const steps: Superstep[] = [];

  const decide = (done: readonly { task: Task | undefined; edge: Edge; commands: Command[] }[], after: State): Task[] => {
    const nodes = new Set<string>();
    const sent: Task[] = [];
    const arrive = new Map([...arrivals].map(([t, s]) => [t, new Set(s)]));
    const go = (target: string): void => {
      if (target !== END) nodes.add(target);
    };
    const left = new Set<string>();
    for (const { task, edge, commands } of done) {
      // An edge belongs to its node: it is taken once, however many tasks of the node ended; commands belong to a task.
      if (task !== undefined && edge.kind !== "gotos" && left.has(task.node.name)) continue;
      if (task !== undefined) left.add(task.node.name);
      if (edge.kind === "gotos") {
        for (const command of commands) {
          if ("goto" in command) go(command.goto);
          else sent.push({ node: byName.get(command.send) as NodeSpec, input: command.input });
        }
      } else if (edge.kind === "to") edge.targets.forEach(go);
      else if (edge.kind === "route") chosen(edge, after).forEach(go);
      else if (edge.kind === "join") arrive.set(edge.target, (arrive.get(edge.target) ?? new Set()).add((task as Task).node.name));
      else {
        const list = items(edge, after);
        if (list.length === 0) {
          if (edge.otherwise === undefined) throw new Failure("empty_sends");
          go(edge.otherwise);
        }
        for (const input of list) sent.push({ node: byName.get(edge.target) as NodeSpec, input });
      }
    }
    for (const [target, all] of sources)
      if ([...all].every((source) => arrive.get(target)?.has(source))) {
        nodes.add(target);
        arrive.delete(target);
      }
    const order = (names: Iterable<string>): Task[] => [...names].sort((a, b) => (index.get(a) as number) - (index.get(b) as number)).map((name) => ({ node: byName.get(name) as NodeSpec }));
    let next = [...order([...nodes].filter((name) => !byName.get(name)?.defer)), ...sent.filter(({ node }) => !node.defer)];
    const nextHeld = new Set([...heldNodes, ...[...nodes].filter((name) => byName.get(name)?.defer)]);
    let nextSends = [...heldSends, ...sent.filter(({ node }) => node.defer)];
    if (next.length === 0) {
      next = [...order(nextHeld), ...nextSends];
      nextHeld.clear();
      nextSends = [];
    }
    if (next.length === 0 && [...arrive.values()].some((set) => set.size > 0)) throw new Failure("dead_route");
    arrivals.clear();
    for (const [t, s] of arrive) arrivals.set(t, s);
    heldNodes = nextHeld;
    heldSends = nextSends;
    return next;
  };

  try {
    let tasks = decide([{ task: undefined, edge: spec.start, commands: [] }], state);
    while (tasks.length > 0) {
      if (steps.length >= maxSteps) throw new Failure("step_limit");
      const keptBefore = kept;
      const results = tasks.map((task) => {
        const { node, input } = task;
        if (node.kind !== "sub") {
          const answers = Array.from({ length: node.asks }, (_, k) => answering(path, node.name, state.log.length, input, k));
          return bodyOf(node, state, input, answers);
        }
        const key = `${path}/${node.name}`;
        const base = node.persistence === "kept" ? (keptBefore.get(key) ?? {}) : {};
        const inner = interpret(node.inner as Spec, { ...base, sum: state.sum }, maxSteps, node.persistence === "kept" ? keptBefore : new Map(), key, answering);
        if (inner.error !== undefined) throw new Failure(inner.error);
        if (node.persistence === "kept") keptBefore.set(key, { ...inner.state, eph: undefined });
        return { writes: [{ log: [`${node.name}{${inner.state.log.join()}}`], sum: inner.state.sum % 5 }], commands: [] };
      });
      const after = foldAll(state, results.map((result) => result.writes));
      const next = decide(tasks.map((task, i) => ({ task, edge: task.node.edge, commands: results[i]?.commands ?? [] })), after);
      steps.push({ tasks: tasks.map(nameOf), next: next.map(nameOf) });
      state = after;
      tasks = next;
    }
    return { state, steps };
  } catch (error) {
    if (error instanceof Failure) return { state, steps, error: error.code };
    throw error;
  }
}
const nameOf = (task: Task): string => task.node.name;

function foldAll(before: State, byTask: readonly Write[][]): State {
  const tasksThatWrite = (key: keyof Write): number => byTask.filter((writes) => writes.some((write) => write[key] !== undefined)).length;
  if (tasksThatWrite("x") > 1 || tasksThatWrite("eph") > 1) throw new Failure("channel_conflict");
  const all = byTask.flat();
  const overs = all.filter(({ log }) => log !== undefined && "over" in log);
  if (overs.length > 1) throw new Failure("channel_conflict");
  const base = overs[0]?.log as { over: readonly string[] } | undefined;
  let log = base === undefined ? before.log : base.over;
  let { sum, x } = before;
  const rec = { ...before.rec };
  let eph: number | undefined;
  for (const write of all) {
    if (write.log !== undefined && !("over" in write.log)) log = [...log, ...write.log];
    if (write.sum !== undefined) sum += write.sum;
    if (write.x !== undefined) x = write.x;
    if (write.eph !== undefined) eph = write.eph;
    for (const [key, value] of Object.entries(write.rec ?? {}))
      if (value === undefined) delete rec[key];
      else rec[key] = value;
  }
  return { log, sum, x, rec, ...(eph === undefined ? {} : { eph }) };
}
