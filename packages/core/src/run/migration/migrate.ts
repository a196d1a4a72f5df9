/**
 * Applying a migration to where a thread stands: names become the new ones, the state what the new graph needs. Pure: what is
 * to be written is told by what comes out of it. Ids and idempotency keys stay: an effect in flight is found under its own.
 */
import { describeThrown, StatewrightError } from "../../base/errors.ts";
import { deepFreeze, describeValue, isPlainObject } from "../../base/json.ts";
import { issuesText } from "../../base/schema.ts";
import type { Control, Task } from "../../checkpoint/checkpoint.ts";
import { initialState } from "../../checkpoint/codec/saved-state.ts";
import { type InterruptRow, isOpen } from "../../checkpoint/journal.ts";
import { executingValue } from "../../compile/compile-machine.ts";
import { type Migration, nameOf } from "../../compile/migration.ts";
import { type Plan, planOf } from "../../compile/plan.ts";
import { graphOfTool } from "../../define/graph-tool.ts";
import { innerGraphOf } from "../../define/inner-graph.ts";
import type { Codec } from "../../state/codec.ts";
import { inDoubtKey } from "../../tool/policy/approval.ts";
import { callSegment, isWithinCall } from "../conversation/pending-calls.ts";
import type { State } from "../session/returns.ts";
import { isStartInDoubt } from "../task/once.ts";
import { byMigration } from "./compatibility.ts";
import { renamedMachine } from "./migrate-machine.ts";
import { renamedEffect, renamedTools } from "./migrate-names.ts";
import type { InnerCall, Stand } from "./thread-snapshot.ts";

/** Where a thread stands after migrations, and where it stood before. Journal and questions are in the same order in both. */
export interface Migrated extends Stand {
  readonly origin: Stand;
  /** Channels whose value the store does not have. */
  readonly given: ReadonlySet<string>;
  /** There is something to write, if only other names. */
  readonly isOther: boolean;
  readonly inner: readonly (InnerCall & { readonly stand: Migrated })[];
}

/** Bring a stand to the end of the migrations, one after the other, and read it as `plan` has it. Throws `migration_failed`. */
export function migrate(stand: Stand, migrations: readonly Migration[], plan: Plan, codec: Codec): Migrated {
  const end = migrations.reduce((at, migration) => {
    const moved = moveTo(at, planOf(migration.to), migration, at.line, [], codec);
    if (moved.plan.drawing !== undefined) return moved;
    return { ...moved, questions: moved.questions.map((row) => renamedQuestion(row, migration)) };
  }, unmoved(stand));
  return end.plan === plan ? end : moveTo(end, plan, undefined, end.line, [], codec);
}

function unmoved(stand: Stand): Migrated {
  const inner = stand.calls.flatMap((call) =>
    call.stand === undefined ? [] : [{ ...call, stand: unmoved(call.stand) }],
  );
  return { ...stand, origin: stand, given: new Set(), isOther: false, inner };
}

const nothingRenamed: Readonly<Record<string, string>> = {};

function moveTo(
  stand: Migrated,
  plan: Plan,
  migration: Migration | undefined,
  line: string,
  path: readonly string[],
  codec: Codec,
): Migrated {
  if (plan.drawing !== undefined && stand.plan.drawing !== undefined)
    return movedMachine(stand, plan, migration, stand.plan.drawing.machine.id, plan.drawing.machine.id);
  const { nodes = nothingRenamed, tools = nothingRenamed } = migration ?? {};
  const node = (name: string): string => nodes[name] ?? name;
  const control = renamedControl(stand.control, plan, node, path);
  const { state, given } = movedState(stand, plan, migration);
  const renamedCalls = renamedTools(plan, control, state, tools);
  const inner = stand.inner.map((call) => {
    const { node: before, task, stand: within } = call;
    if (call.place !== undefined) return movedCall({ ...call, place: call.place }, within);
    const name = node(before);
    const subgraph = plan.nodes.get(name)?.subgraph;
    const moved =
      subgraph === undefined
        ? within
        : moveTo(
            within,
            planOf(subgraph.graph),
            migration?.inner[before],
            `${line}/${subgraph.persistence === "kept" ? name : (task?.id ?? name)}`,
            [...path, name],
            codec,
          );
    return { node: name, task: task === undefined ? undefined : { ...task, node: node(task.node) }, stand: moved };
  });
  function movedCall(call: InnerCall & { readonly place: number }, within: Migrated): Migrated["inner"][number] {
    const name = tools[call.node] ?? call.node;
    const task = call.task === undefined ? undefined : { ...call.task, node: node(call.task.node) };
    const graph =
      task === undefined ? undefined : graphOfTool(plan.nodes.get(task.node)?.tools?.registry.get(name))?.graph();
    const own = `${line}/${callSegment(task?.id ?? "", call.place)}`;
    const moved = graph === undefined ? within : moveTo(within, planOf(graph), undefined, own, [...path, name], codec);
    return { node: name, task, place: call.place, stand: moved };
  }
  const lost = stand.calls.flatMap((call) => (call.stand === undefined ? [{ ...call, node: node(call.node) }] : []));
  const calls = inner.map((call) =>
    innerGraphOf(plan.graph, call.node) === undefined ? { ...call, stand: undefined } : call,
  );
  return {
    ...stand,
    plan,
    line,
    path,
    control,
    state: renamedCalls === undefined ? state : Object.freeze({ ...state, messages: renamedCalls }),
    given: renamedCalls === undefined ? given : new Set([...given, "messages"]),
    effects: stand.effects.map((row) => renamedEffect(row, stand.control, { node, tools, codec })),
    isOther:
      stand.isOther ||
      migration !== undefined ||
      plan.shape !== stand.plan.shape ||
      line !== stand.line ||
      path.join(".") !== stand.path.join("."),
    inner,
    calls: [...calls, ...lost],
  };
}

/** A machine drawn by hand: its journal and its questions name actors, which keep their names. */
function movedMachine(
  stand: Migrated,
  plan: Plan,
  migration: Migration | undefined,
  machine: string,
  next: string,
): Migrated {
  const control = deepFreeze(renamedMachine(stand.control, machine, next, migration?.nodes ?? nothingRenamed));
  const given = migration === undefined ? {} : stateFrom(migration, stand.state);
  const stray = Object.keys(given).find((name) => name !== "context");
  if (stray !== undefined)
    throw failed(
      migration as Migration,
      `its state gave "${stray}", and of a machine drawn by hand only the context is given`,
    );
  const context = (given as { readonly context?: unknown }).context ?? stand.state["context"];
  if (!isPlainObject(context))
    throw failed(migration as Migration, `its state gave the context ${describeValue(context)}, which is no object`);
  return {
    ...stand,
    plan,
    control,
    state: Object.freeze({ ...stand.state, value: control.machine, context: deepFreeze(context) }),
    given: new Set(["value", "context"]),
    isOther: stand.isOther || migration !== undefined || plan.shape !== stand.plan.shape,
  };
}

function renamedControl(
  control: Control,
  plan: Plan,
  node: (name: string) => string,
  path: readonly string[],
): Control {
  const { tasks, joins, held, begun, caller } = control;
  const moved = tasks.map((task): Task => {
    const { from } = task;
    return { ...task, node: node(task.node), ...(from === undefined ? {} : { from: from.map(node) }) };
  });
  const pending = [...new Set(moved.map((task) => task.node))];
  return deepFreeze({
    ...control,
    machine: control.machine === null ? null : executingValue(plan.graph, pending),
    tasks: moved,
    joins: Object.fromEntries(Object.entries(joins).map(([target, from]) => [node(target), from.map(node)])),
    ...(held === undefined
      ? {}
      : { held: held.map((each) => ({ ...each, node: node(each.node), from: each.from.map(node) })) }),
    ...(begun === undefined ? {} : { begun: begun.map(node) }),
    ...(caller === undefined ? {} : { caller: { ...caller, within: path.join("."), graph: plan.graph.name } }),
  });
}

/** The state that the new graph reads: what it has under the same name, its defaults, and what the migration gives. */
function movedState(
  { state: old, channels, given: before }: Migrated,
  plan: Plan,
  migration: Migration | undefined,
): { readonly state: State; readonly given: ReadonlySet<string> } {
  const declared = plan.graph.state.channels;
  const next: Record<string, unknown> = initialState(declared);
  for (const name of Object.keys(declared))
    if ((channels.has(name) || before.has(name)) && Object.hasOwn(old, name)) next[name] = old[name];
  const given = new Set(before);
  for (const [name, value] of Object.entries(migration === undefined ? {} : stateFrom(migration, old))) {
    if (value === undefined) continue;
    next[name] = parsed(migration as Migration, plan, name, value);
    given.add(name);
  }
  return { state: Object.freeze(next), given };
}

function stateFrom(migration: Migration, old: State): object {
  if (migration.state === undefined) return {};
  let given: unknown;
  try {
    given = migration.state(old as never);
  } catch (cause) {
    throw failed(migration, `its state threw: ${describeThrown(cause)}`, {}, cause);
  }
  if (isPlainObject(given)) return given;
  throw failed(migration, `its state gave ${describeValue(given)}, which is not an object of channels`);
}

function parsed(migration: Migration, plan: Plan, name: string, value: unknown): unknown {
  const { channels } = plan.graph.state;
  const channel = Object.hasOwn(channels, name) ? channels[name] : undefined;
  if (channel === undefined)
    throw failed(migration, `its state gave "${name}", which is no channel of the new graph`, { channel: name });
  const result = channel.parseValue(value);
  if (result.ok) return deepFreeze(result.value);
  const path = result.issues[0]?.path;
  const why = `its state gave for the channel "${name}" what its schema refuses: ${issuesText(result.issues)}`;
  throw failed(migration, why, { channel: name, ...(path ? { path } : {}) }, result.cause);
}

function failed(
  migration: Migration,
  why: string,
  place: { readonly channel?: string; readonly path?: string } = {},
  cause?: unknown,
): StatewrightError {
  return new StatewrightError("migration_failed", {
    what: `${nameOf(migration)} failed: ${why}`,
    next: "Mend the migration and try again: nothing of the thread was changed",
    place: { graph: migration.to.name, ...place },
    cause,
  });
}

// Questions stand with the outermost graph, under the nodes that lead to who asked.

function renamedQuestion(row: InterruptRow, migration: Migration): InterruptRow {
  if (row.answeredBy === byMigration) return row;
  const path = row.node.split(".");
  const asked = path[path.length - 1] ?? "";
  const own = row.key.slice(row.node.length - asked.length);
  const places = row.id.split("/");
  let at: Migration | undefined = migration;
  const nodes = path.map((name, index) => {
    const isAsker = index === path.length - 1;
    if (!isAsker && isWithinCall({ withinId: places[index] ?? "" })) {
      const tool = at?.tools[name] ?? name;
      at = undefined;
      return tool;
    }
    const renamed = at?.nodes[name] ?? name;
    if (!isAsker) at = at?.inner[name];
    return renamed;
  });
  const isDeclared = row.about === undefined && own !== inDoubtKey && !isStartInDoubt(row);
  const key = isDeclared ? (at?.interrupts[own] ?? own) : own;
  const node = nodes.join(".");
  const whole = [...nodes.slice(0, -1), key].join(".");
  if (node === row.node && whole === row.key) return row;
  return { ...row, node, key: whole, id: key === own ? row.id : idOf(row.id, own, key) };
}

/** The id under which a body finds its question: its key stands at the end, before the number of a second one of that key. */
function idOf(id: string, own: string, key: string): string {
  const nth = /:\d+$/.exec(id)?.[0] ?? "";
  const bare = id.endsWith(own) ? id : id.slice(0, id.length - nth.length);
  return `${bare.slice(0, bare.length - own.length)}${key}${bare === id ? "" : nth}`;
}

/** The rows that take the place of a question: under another id it is another row, and the old one tells where it went. */
export function questionRows(
  before: InterruptRow,
  after: InterruptRow,
  codec: Codec,
  now: number,
): readonly InterruptRow[] {
  if (before === after) return [];
  if (before.id === after.id || !isOpen(before)) return [after];
  const answer = codec.encode({ migrated: after.id }, "the record of a question under another key");
  return [{ ...before, answer, answeredAt: now, answeredBy: byMigration }, after];
}
