/**
 * Structural compatibility check: compares the pending work of a thread with a changed graph (rule E50). Pure: reads
 * only the {@link ThreadSnapshot} and changes nothing.
 */
import { describeIssues, parseWith } from "../../base/schema.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { type InterruptRow, isOpen, isStartInDoubt } from "../../checkpoint/journal.ts";
import { findTool } from "../../define/inner-graph.ts";
import type { Message } from "../../model/message.ts";
import type { Codec } from "../../state/codec.ts";
import { getPayloadSchema } from "../../tool/policy/interrupt.ts";
import { migrationAuthor } from "../conversation/answered-error.ts";
import { findAnswerSchema, findDeclaredInterrupt, findInterruptSource } from "../conversation/interrupt-schema.ts";
import { listPendingCalls } from "../conversation/pending-calls.ts";
import { taskKey } from "../session/parts/persistence.ts";
import type { TaskOutcome } from "../session/returns.ts";
import { findOutcomeIncompatibilities } from "../superstep/outcome-compatibility.ts";
import type { ThreadSnapshot } from "./thread-snapshot.ts";

/** A part of a thread that is incompatible with the graph. */
export interface Incompatibility {
  readonly kind:
    | "channel"
    | "node"
    | "input"
    | "join"
    | "interrupt"
    | "answer"
    | "result"
    | "tool"
    | "subgraph"
    | "machine";
  /** A sentence without its full stop. */
  readonly what: string;
  readonly node?: string;
  readonly channel?: string;
  /** Path inside the value of the channel. */
  readonly path?: string;
}

/** Finds the incompatibilities of the thread of a graph, including nested graphs. Empty when the thread may continue. */
export function findGraphIncompatibilities(snapshot: ThreadSnapshot, codec: Codec): readonly Incompatibility[] {
  const inner = snapshot.calls.flatMap((call) =>
    call.snapshot === undefined ? [] : findGraphIncompatibilities(call.snapshot, codec),
  );
  return [
    ...checkState(snapshot),
    ...checkTasks(snapshot),
    ...checkJoins(snapshot),
    ...checkCalls(snapshot),
    ...checkJournal(snapshot, codec),
    ...checkToolCalls(snapshot),
    ...snapshot.interrupts.flatMap((row) => checkInterrupt(snapshot, codec, row)),
    ...inner,
  ];
}

/**
 * Checks channel values against their schemas. With pending tasks, also checks for required channels without a value.
 */
function checkState({ plan, state, path, control }: ThreadSnapshot): readonly Incompatibility[] {
  return Object.entries(plan.graph.state.channels).flatMap(
    ([channel, { kind, parseValue }]): readonly Incompatibility[] => {
      if (kind === "untracked") return [];
      const value = state[channel];
      if (value === undefined) {
        if (control.tasks.length === 0 || Object.hasOwn(state, channel)) return [];
        return [
          {
            kind: "channel",
            what: `the channel "${channel}"${formatNesting(path)} has no value and no default`,
            channel,
          },
        ];
      }
      const parsed = parseValue(value);
      if (parsed.ok) return [];
      const what = `the value of channel "${channel}"${formatNesting(path)} does not match its schema: ${describeIssues(parsed.issues)}`;
      const at = parsed.issues[0]?.path;
      return [{ kind: "channel", what, channel, ...(at === undefined ? {} : { path: at }) }];
    },
  );
}

function formatNesting(path: readonly string[]): string {
  return path.length === 0 ? "" : ` of the graph in "${path.join(".")}"`;
}

function qualifyNode({ path }: ThreadSnapshot, node: string): string {
  return [...path, node].join(".");
}

// Pending tasks.

function checkTasks(snapshot: ThreadSnapshot): readonly Incompatibility[] {
  const { plan, control } = snapshot;
  const pending = control.tasks.map(({ node, input }) => ({
    node,
    sent: input === undefined ? undefined : { input: control.inputs[input] },
  }));
  const incompatibilities = [...pending, ...(control.deferred ?? [])].flatMap(({ node, sent }) =>
    checkPendingTask(snapshot, node, sent),
  );
  if (plan.parallel || control.tasks.length < 2) return incompatibilities;
  const nodes = [...new Set(control.tasks.map(({ node }) => node))].map((node) => `"${node}"`);
  const what = `${control.tasks.length} tasks are pending (${nodes.join(", ")}), but the graph has no parallel edges`;
  return [...incompatibilities, { kind: "node", what }];
}

function checkPendingTask(
  snapshot: ThreadSnapshot,
  node: string,
  sent: { readonly input: unknown } | undefined,
): readonly Incompatibility[] {
  const record = snapshot.plan.nodes.get(node);
  const name = qualifyNode(snapshot, node);
  if (record === undefined)
    return [{ kind: "node", what: `the node "${name}" is pending, but the graph has no such node`, node: name }];
  const what = record.logic.findInputProblem(record, name, sent);
  return what === undefined ? [] : [{ kind: "input", what, node: name }];
}

function checkJoins(snapshot: ThreadSnapshot): readonly Incompatibility[] {
  return Object.entries(snapshot.control.joins).flatMap(([target, arrived]): readonly Incompatibility[] => {
    const sources = snapshot.plan.joins.get(target) ?? [];
    const removedSources = arrived.filter((source) => !sources.includes(source));
    if (removedSources.length === 0) return [];
    const from = removedSources.map((source) => `"${qualifyNode(snapshot, source)}"`).join(", ");
    const what = `${from} arrived at the join before "${qualifyNode(snapshot, target)}", which no longer waits for that node`;
    return [{ kind: "join", what, node: qualifyNode(snapshot, target) }];
  });
}

function checkCalls(snapshot: ThreadSnapshot): readonly Incompatibility[] {
  return snapshot.calls.flatMap(({ node, task, callIndex, snapshot: inner }): readonly Incompatibility[] => {
    if (inner !== undefined || task === undefined) return [];
    const name = qualifyNode(snapshot, node);
    if (callIndex !== undefined) {
      if (findTool(snapshot.plan.nodes.get(task.node), node) === undefined) return [];
      const what = `a call of the tool "${name}" has a graph in progress, but the tool runs no graph now`;
      return [{ kind: "tool", what, node: qualifyNode(snapshot, task.node) }];
    }
    if (!snapshot.plan.nodes.has(node)) return [];
    const what = `the node "${name}" has a graph in progress, but runs no such graph now`;
    return [{ kind: "subgraph", what, node: name }];
  });
}

// Recorded effects, tool calls and interrupts.

function checkJournal(snapshot: ThreadSnapshot, codec: Codec): readonly Incompatibility[] {
  const byTask = new Map(snapshot.control.tasks.map((task) => [task.id, task]));
  return snapshot.effects.flatMap((row): readonly Incompatibility[] => {
    const task = byTask.get(row.task);
    const node = task === undefined ? undefined : snapshot.plan.nodes.get(task.node);
    if (task === undefined || node === undefined) return [];
    if (!node.logic.canRecord(row)) {
      const what = `the node "${qualifyNode(snapshot, task.node)}" has recorded the ${row.kind} "${row.name}", which a node of its kind cannot record`;
      return [{ kind: "result", what, node: qualifyNode(snapshot, task.node) }];
    }
    if (row.kind !== "task" || row.key !== taskKey || row.state !== "ok" || row.outcome === undefined) return [];
    return checkOutcome(snapshot, task, codec.decode(row.outcome) as TaskOutcome);
  });
}

/** Checks the recorded outcome of a finished task in an unfinished superstep. */
function checkOutcome(snapshot: ThreadSnapshot, { node }: Task, outcome: TaskOutcome): readonly Incompatibility[] {
  const name = qualifyNode(snapshot, node);
  return findOutcomeIncompatibilities(snapshot.plan, outcome).map(({ reason, ...where }): Incompatibility => {
    return { kind: "result", what: `the recorded result of the node "${name}" ${reason}`, node: name, ...where };
  });
}

/**
 * Checks pending tool calls of the last message. Arguments are checked for a call that has started or was shown to a
 * person.
 */
function checkToolCalls(snapshot: ThreadSnapshot): readonly Incompatibility[] {
  const { plan, control, state, effects } = snapshot;
  return control.tasks.flatMap((task) => {
    const node = plan.nodes.get(task.node);
    if (node?.logic.answersCalls !== true || plan.graph.state.channels["messages"]?.kind !== "messages") return [];
    const name = qualifyNode(snapshot, task.node);
    return listPendingCalls(state["messages"] as readonly Message[]).calls.flatMap(
      ({ block, key: callKey }): readonly Incompatibility[] => {
        const hasStarted = (): boolean => effects.some(({ kind, key }) => kind === "tool" && key === callKey);
        const isShown = (): boolean => snapshot.interrupts.some(({ id }) => id.endsWith(`:${callKey}`));
        const what = node.logic.findCallProblem(node, name, block, () => hasStarted() || isShown());
        return what === undefined ? [] : [{ kind: "tool", what, node: name }];
      },
    );
  });
}

function checkInterrupt(snapshot: ThreadSnapshot, codec: Codec, row: InterruptRow): readonly Incompatibility[] {
  const createIncompatibility = (kind: "interrupt" | "answer", reason: string): readonly Incompatibility[] => [
    { kind, what: `the interrupt "${row.key}" of the node "${row.node}" ${reason}`, node: row.node },
  ];
  if (row.answeredBy === migrationAuthor) return [];
  const source = findInterruptSource(snapshot.plan, row);
  const node = source?.graph.nodes.get(source.node);
  if (source === undefined || node === undefined)
    return createIncompatibility("interrupt", "is recorded, but the graph has no such node");
  const declared = findDeclaredInterrupt(source);
  const interrupt = { key: source.key, isAboutCall: row.about !== undefined, isStartInDoubt: isStartInDoubt(row) };
  const reason = node.logic.findInterruptProblem(interrupt);
  if (reason !== undefined) return createIncompatibility("interrupt", reason);
  if (node.logic.raisesDeclared && !interrupt.isStartInDoubt) {
    if (declared === undefined || node.policy.interrupts?.includes(source.key) === false)
      return createIncompatibility(
        "interrupt",
        isOpen(row)
          ? "is open, but the node does not declare it now"
          : "is answered, but the node does not declare it now",
      );
    const shownSchema = getPayloadSchema(declared);
    const payload = shownSchema === undefined ? undefined : parseWith(shownSchema, codec.decode(row.payload));
    if (payload?.ok === false)
      return createIncompatibility(
        "interrupt",
        `has a payload that does not match its schema: ${describeIssues(payload.issues)}`,
      );
  }
  const text = row.answer ?? row.onExpire;
  const schema = text === undefined ? undefined : findAnswerSchema(snapshot.plan, row);
  if (schema === undefined || text === undefined) return [];
  const answer = parseWith(schema, codec.decode(text));
  return answer.ok
    ? []
    : createIncompatibility("answer", `has an answer that does not match its schema: ${describeIssues(answer.issues)}`);
}
