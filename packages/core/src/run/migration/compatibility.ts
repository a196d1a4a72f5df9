/**
 * Structural compatibility check: compares the pending work of a thread with a changed graph (rule E50). Pure: reads
 * only the {@link ThreadSnapshot} and changes nothing.
 */
import type { AnyStateNode } from "xstate";
import { describeThrown, getErrorFact, isStatewrightError } from "../../base/errors.ts";
import { describeIssues, parseWith } from "../../base/schema.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { type EffectRow, type InterruptRow, isOpen } from "../../checkpoint/journal.ts";
import type { NodeRecord } from "../../define/graph.ts";
import type { Message } from "../../model/message.ts";
import type { Codec } from "../../state/codec.ts";
import { parseArgs, prepareArgs } from "../../tool/arguments/parse-args.ts";
import { inDoubtKey } from "../../tool/policy/approval.ts";
import { getPayloadSchema } from "../../tool/policy/interrupt.ts";
import { findAnswerSchema, findDeclaredInterrupt, findInterruptSource } from "../conversation/interrupt-schema.ts";
import { listPendingCalls } from "../conversation/pending-calls.ts";
import { restoreActorTree } from "../machine/actor-tree.ts";
import { isAfterAgentEffect } from "../model-call/agent-hooks.ts";
import { taskKey } from "../session/persistence.ts";
import type { TaskOutcome } from "../session/returns.ts";
import { findOutcomeIncompatibilities } from "../superstep/outcome-compatibility.ts";
import { isStartInDoubt } from "../task/once.ts";
import { isFinalCall } from "../tool-call/final-call.ts";
import type { ThreadSnapshot } from "./thread-snapshot.ts";

/** A part of a thread that is incompatible with the graph. */
export interface Incompatibility {
  readonly kind:
    | "channel"
    | "node"
    | "input"
    | "join"
    | "question"
    | "answer"
    | "result"
    | "tool"
    | "subgraph"
    | "machine";
  /** One sentence without its full stop. */
  readonly what: string;
  readonly node?: string;
  readonly channel?: string;
  /** Path inside the value of the channel. */
  readonly path?: string;
}

/** Finds the incompatibilities of a thread, including nested graphs. Empty when the thread may continue. */
export function findIncompatibilities(snapshot: ThreadSnapshot, codec: Codec): readonly Incompatibility[] {
  if (snapshot.plan.machine !== undefined) return checkMachine(snapshot);
  const inner = snapshot.calls.flatMap((call) =>
    call.snapshot === undefined ? [] : findIncompatibilities(call.snapshot, codec),
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
  if (record.kind !== "task" && sent !== undefined)
    return [{ kind: "input", what: `the node "${name}" was sent an input, but takes no input now`, node: name }];
  if (record.kind !== "task" || record.input === undefined) return [];
  if (sent === undefined)
    return [
      {
        kind: "input",
        what: `the node "${name}" is pending without the input that its schema requires now`,
        node: name,
      },
    ];
  const parsed = parseWith(record.input, sent.input);
  if (parsed.ok) return [];
  const what = `the input sent to the node "${name}" does not match its schema: ${describeIssues(parsed.issues)}`;
  return [{ kind: "input", what, node: name }];
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
      if (snapshot.plan.nodes.get(task.node)?.tools?.registry.get(node) === undefined) return [];
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
    if (!canRecord(row, node)) {
      const what = `the node "${qualifyNode(snapshot, task.node)}" has recorded the ${row.kind} "${row.name}", which a node of its kind cannot record`;
      return [{ kind: "result", what, node: qualifyNode(snapshot, task.node) }];
    }
    if (row.kind !== "task" || row.key !== taskKey || row.state !== "ok" || row.outcome === undefined) return [];
    return checkOutcome(snapshot, task, codec.decode(row.outcome) as TaskOutcome);
  });
}

function canRecord({ kind, key }: EffectRow, { tools, subgraph }: NodeRecord): boolean {
  if (kind === "task") return true;
  return tools === undefined ? kind !== "tool" && subgraph === undefined : kind === "tool" || isAfterAgentEffect(key);
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
    if (node?.tools === undefined || plan.graph.state.channels["messages"]?.kind !== "messages") return [];
    const { tools } = node;
    const { registry } = tools;
    return listPendingCalls(state["messages"] as readonly Message[]).calls.flatMap(
      (call): readonly Incompatibility[] => {
        if (isFinalCall(tools, call)) return [];
        const { block } = call;
        const name = qualifyNode(snapshot, task.node);
        const tool = registry.get(block.name);
        if (tool === undefined)
          return [
            {
              kind: "tool",
              what: `the call "${block.id}" is for the tool "${block.name}", which the node "${name}" does not have`,
              node: name,
            },
          ];
        const hasStarted = effects.some(({ kind, key }) => kind === "tool" && key === call.key);
        const isShown = snapshot.interrupts.some(({ id }) => id.endsWith(`:${call.key}`));
        const prepared = hasStarted || isShown ? prepareArgs(tool, block.args) : undefined;
        const parsed = prepared?.ok === true ? parseArgs(tool.spec, prepared.value) : prepared;
        if (parsed === undefined || parsed.ok) return [];
        const what = `the arguments of the call "${block.id}" do not match the tool "${block.name}": ${describeIssues(parsed.issues)}`;
        return [{ kind: "tool", what, node: name }];
      },
    );
  });
}

function checkInterrupt(snapshot: ThreadSnapshot, codec: Codec, row: InterruptRow): readonly Incompatibility[] {
  const createIncompatibility = (kind: "question" | "answer", reason: string): readonly Incompatibility[] => [
    { kind, what: `the interrupt "${row.key}" of the node "${row.node}" ${reason}`, node: row.node },
  ];
  if (row.answeredBy === migrationAuthor) return [];
  const source = findInterruptSource(snapshot.plan, row);
  const node = source?.graph.nodes.get(source.node);
  if (source === undefined || node === undefined)
    return createIncompatibility("question", "is recorded, but the graph has no such node");
  const declared = findDeclaredInterrupt(source);
  if (node.tools !== undefined) {
    if (row.about === undefined && source.key !== inDoubtKey)
      return createIncompatibility("question", "was raised by the node's body, but the node is a tool node now");
  } else if (!isStartInDoubt(row)) {
    if (row.about !== undefined)
      return createIncompatibility("question", "is about a tool call, but the node calls no tools now");
    if (declared === undefined || node.policy.asks?.includes(source.key) === false)
      return createIncompatibility(
        "question",
        isOpen(row)
          ? "is open, but the node does not declare it now"
          : "is answered, but the node does not declare it now",
      );
    const shownSchema = getPayloadSchema(declared);
    const payload = shownSchema === undefined ? undefined : parseWith(shownSchema, codec.decode(row.payload));
    if (payload?.ok === false)
      return createIncompatibility(
        "question",
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

/** `answeredBy` of an interrupt that continues under another key. */
export const migrationAuthor = "a migration";

// User-written machines.

/** Matches the id that XState generates for an actor of a state without an explicit id. */
const generatedIdPattern = /^\d+\./;

/**
 * Returns true when the id of an actor was generated from a state that no longer invokes the actor, e.g. a renamed
 * state.
 */
export function isFromRemovedState(root: AnyStateNode, id: string): boolean {
  return generatedIdPattern.test(id) && !hasInvoke(root, id);
}

function hasInvoke(state: AnyStateNode, id: string): boolean {
  return (
    state.invoke.some((invoke) => invoke.id === id) || Object.values(state.states).some((each) => hasInvoke(each, id))
  );
}

function checkMachine({ plan, state, control }: ThreadSnapshot): readonly Incompatibility[] {
  const { machine } = plan;
  if (machine === undefined || control.machine === null || control.tasks.length === 0) return [];
  const createIncompatibility = (what: string): readonly Incompatibility[] => [{ kind: "machine", what }];
  try {
    const { machines } = restoreActorTree(machine, state as Parameters<typeof restoreActorTree>[1], control);
    const { timers = [], children = [] } = control.pending ?? {};
    const orphanId = children.find((id) => isFromRemovedState(machine.machine.root, id));
    if (orphanId !== undefined)
      return createIncompatibility(
        `the actor "${orphanId}" is running, but no state of the machine invokes an actor with that id`,
      );
    return timers.flatMap(({ to, event }) => {
      const events: readonly string[] = machines.get(to)?.definition.machine.events ?? [];
      if (events.includes(event.type)) return [];
      return createIncompatibility(`a timer for "${event.type}" is pending, but the machine has no such event`);
    });
  } catch (error) {
    return createIncompatibility(isStatewrightError(error) ? getErrorFact(error) : describeThrown(error));
  }
}
