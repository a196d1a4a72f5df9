/** Runtime of a node's body: context, interrupts, recorded steps, model calls, heartbeats. */

import { StatewrightError } from "../../base/errors.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { deepFreeze, describeValue } from "../../base/json.ts";
import type { OpenLongTerm } from "../../base/long-term.ts";
import { checkEffect, checkOptions, listOptionNames } from "../../base/options.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { type EffectRow, isOpen, stepInDoubtSuffix } from "../../checkpoint/journal.ts";
import type { NodeRecord } from "../../define/graph.ts";
import type { NodeRuntime, StepOptions, StepRuntime } from "../../define/node.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import type { Generate, GenerateRequest } from "../../tool/definition/generate.ts";
import { toJsonSchema } from "../../tool/definition/model-tool.ts";
import { inDoubtKey, type StepInDoubtAnswer, stepInDoubtAnswer } from "../../tool/policy/approval.ts";
import { getAnswerSchema, type InterruptDeclaration, parseExpiry } from "../../tool/policy/interrupt.ts";
import { readPayload } from "../conversation/interrupt-payload.ts";
import { emit } from "../events/events.ts";
import { type DoubtAnswer, decodeOutcome, type EffectDoubt, type RecordedOutcome } from "../journal/decide-effect.ts";
import { createIdempotencyKey, recordFailure, runRecordedEffect } from "../journal/journal.ts";
import { createAuxiliaryRow } from "../journal/ledger.ts";
import {
  createStepLongTerm,
  createTaskLongTerm,
  getChanges,
  getRecordedChanges,
  recordChanges,
} from "../journal/long-term-writes.ts";
import { claimBodyKey } from "../journal/step-keys.ts";
import { parseQuestion, type Question, toGenerated } from "../model-call/generate.ts";
import { callModel } from "../model-call/model-call.ts";
import { replyReview } from "../model-call/reply-review.ts";
import { emitCustomEvent } from "../session/custom-event.ts";
import { createBodyBreakpoint } from "../session/options/check-run-options.ts";
import type { Journal } from "../session/parts/journal.ts";
import { type Persistence, recordEffect, taskKey, toRowKey } from "../session/parts/persistence.ts";
import { getErrorPlace, getInterruptIdPrefix, getTaskPlace, type Position } from "../session/parts/position.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import { getRunIdentity, type InterruptRequest, type TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import { requireStore } from "../task/attempt.ts";
import { createOnceInterruptError } from "../task/once.ts";

/** Creates the runtime of a node's body. `keyPrefix` precedes the keys of recorded effects. */
export function createNodeRuntime(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal" | "signals" | "inboxes">,
  scope: TaskScope,
  keyPrefix: string,
): NodeRuntime & { readonly input: unknown } {
  const { task, node } = scope;
  // Created on first use: of thousands of tasks few run a step or raise an interrupt.
  let raisedIds: Set<string> | undefined;
  const checkKey = (key: string, name?: string): Promise<never> | undefined => {
    if (scope.isEnded()) return rejectAbandoned(scope.getSignal().reason);
    // A database stores every lone surrogate as the same replacement character, so two keys would collide.
    if (typeof key !== "string" || !key.isWellFormed())
      return Promise.reject(
        createInvalidArgumentError(session.position, task, "the step key", {
          value: key,
          expected: "a string without lone surrogates",
        }),
      );
    const keyError = claimBodyKey(session.position, session.journal, scope, { keyPrefix, key, name });
    if (keyError !== undefined) return Promise.reject(keyError);
    return undefined;
  };
  const runtime: Omit<NodeRuntime, "signal"> & { readonly input: unknown; readonly [createSignal]: () => AbortSignal } =
    {
      context: session.env.context,
      run: getRunIdentity(session.position, task),
      attempt: scope.attempt,
      idempotencyKey: createIdempotencyKey(session.position, task, taskKey),
      clock: session.env.world.clock,
      input: task.input === undefined ? undefined : session.progress.control.inputs[task.input],
      [createSignal]: scope.getSignal,
      longTerm: (...ids) => createTaskLongTerm(session.position, session.journal, scope, ids),
      interrupt: (async (key: string, options: { readonly payload?: unknown } = {}) => {
        let request: InterruptRequest;
        try {
          checkOptions(`the interrupt ${describeValue(key)} of the node "${task.node}"`, options, ["payload"]);
          const declared = getDeclaredInterrupt(session.position, node, key);
          if (keyPrefix === "" && node.policy.effect === "once")
            throw createOnceInterruptError(session.position, task, key);
          const { interrupts, codec } = requireStore(session.position, session.journal, task, {
            key,
            payload: options.payload,
          });
          const payload = readPayload(`the node "${task.node}"`, key, declared, {
            payload: options.payload,
            place: getErrorPlace(session.position, { node: task.node }),
          });
          const text = codec.encode(payload, `the payload of the interrupt "${key}"`);
          const baseId = keyPrefix === "" ? `${task.id}:${key}` : `${task.id}/${keyPrefix}${key}`;
          raisedIds ??= new Set();
          const id = findInterruptId(interrupts, raisedIds, getInterruptIdPrefix(session.position), {
            baseId,
            payload: text,
          });
          raisedIds.add(id);
          request = {
            id,
            key,
            payload,
            schema: toJsonSchema(getAnswerSchema(declared)),
            expiry: parseExpiry(declared),
          };
        } catch (error) {
          return scope.fail(error);
        }
        const found = scope.consult(request);
        return "answer" in found ? found.answer : scope.suspend([found.open]);
      }) as NodeRuntime["interrupt"],
      breakpoint: (key) => pauseBody(session, scope, keyPrefix, key),
      step: (key, work, options = {}) => {
        const refusal = checkKey(key, options.name ?? key) ?? checkStep(session.position, task, key, { work, options });
        if (refusal !== undefined) return refusal;
        return runStep(session, scope, { keyPrefix, key }, { work, options });
      },
      model: (call, key = "model") => {
        const refusal = checkKey(key);
        if (refusal !== undefined) return refusal;
        return callModel(session, scope, keyPrefix + key, call);
      },
      generate: (async (request: GenerateRequest<unknown>) => {
        const question = parseQuestion(session.env, `the node "${task.node}"`, request);
        const key = findUnusedKey(scope, keyPrefix, question);
        const refusal = checkKey(key);
        if (refusal !== undefined) return refusal;
        const { model, request: sent, policy, review } = question;
        const call = { model, request: sent, ...policy, [replyReview]: review };
        return toGenerated(question, await callModel(session, scope, keyPrefix + key, call));
      }) as Generate,
      progress: (text) => {
        scope.sendHeartbeat();
        if (typeof text !== "string")
          throw createInvalidArgumentError(session.position, task, "progress", { value: text, expected: "a string" });
        emit(session.events, { type: "node.progress", node: task.node, task: task.id, text });
      },
      emit: (name, payload) => {
        scope.sendHeartbeat();
        emitCustomEvent(session, task, name, payload);
      },
      update: createCallUpdater(session, scope),
      heartbeat: scope.sendHeartbeat,
    };
  return Object.defineProperty(runtime, "signal", signalDescriptor) as typeof runtime & Pick<NodeRuntime, "signal">;
}

/** Returns the key of a question; equal questions of a task get numbers after their key. */
function findUnusedKey({ recordedKeys }: TaskScope, keyPrefix: string, { key, hasOwnKey }: Question): string {
  if (hasOwnKey) return key;
  let unused = key;
  for (let nth = 2; recordedKeys?.has(keyPrefix + unused) === true; nth++) unused = `${key}:${nth}`;
  return unused;
}

/** Creates the updater of the tool call that runs this graph; undefined without a call or a reader. */
function createCallUpdater(
  { env, position, events }: Pick<Session, "env" | "position" | "events">,
  scope: TaskScope,
): NodeRuntime["update"] {
  const updateCall = position.nesting?.updateCall;
  if (updateCall === undefined || !env.emitsUpdates || !events.stream.hasReaders()) return undefined;
  return (partial) => {
    scope.sendHeartbeat();
    if (!scope.isEnded()) updateCall(partial);
  };
}

const createSignal: unique symbol = Symbol("signal");

/**
 * Creates the signal on first access. All runtimes share a single getter: an own getter turns each runtime object into
 * a hash table.
 */
const signalDescriptor: PropertyDescriptor & ThisType<{ readonly [createSignal]: () => AbortSignal }> = {
  enumerable: true,
  get() {
    return this[createSignal]();
  },
};

/**
 * Pauses the run at a breakpoint of a body, once: the journal row of the breakpoint is saved with the pause, and the
 * body passes the breakpoint after a resume.
 */
async function pauseBody(
  { env: { world }, position, journal }: Pick<Session, "env" | "position" | "journal">,
  scope: TaskScope,
  keyPrefix: string,
  key: string,
): Promise<void> {
  const { task, node } = scope;
  if (scope.isEnded()) return rejectAbandoned(scope.getSignal().reason);
  try {
    if (typeof key !== "string" || !key.isWellFormed())
      throw createInvalidArgumentError(position, task, "the breakpoint", {
        value: key,
        expected: "a string without lone surrogates",
      });
    if (keyPrefix === "" && node.policy.effect === "once") throw createOnceInterruptError(position, task, key);
    const { saved } = journal;
    if (saved === undefined) throw createUnsavedBreakpointError(position, task, key);
    const row = createAuxiliaryRow(position, world, task, { auxiliary: "breakpoint", key: keyPrefix + key });
    if (saved.rows.has(toRowKey(row))) return undefined;
    recordEffect(saved, { row });
  } catch (error) {
    return scope.fail(error);
  }
  return scope.pauseAtBoundary(createBodyBreakpoint(position, task, key));
}

function createUnsavedBreakpointError(position: Position, task: Task, key: string): StatewrightError {
  return new StatewrightError("missing_store", {
    what: `the node "${task.node}" paused at the breakpoint "${key}" in a run without a store, so it could not be resumed`,
    next: "Pass a store: memoryStore() or sqliteStore(path)",
    place: getErrorPlace(position, { node: task.node }),
  });
}

/** A step of a task: its key, and the prefix of the recorded keys of its body. */
interface StepPlace {
  readonly keyPrefix: string;
  readonly key: string;
}

async function runStep<Value>(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal">,
  scope: TaskScope,
  place: StepPlace,
  {
    work,
    options,
  }: { readonly work: (at: StepRuntime) => Value | Promise<Value>; readonly options: StepOptions<Value> },
): Promise<Value> {
  const { effect = "idempotent", name = place.key, reconcile } = options;
  const { task, node } = scope;
  const key = place.keyPrefix + place.key;
  let changes: LongTermChange[] | undefined;
  const value = await runRecordedEffect<Value>(session, {
    task,
    key,
    kind: "step",
    name,
    effect,
    isAbandoned: scope.isEnded,
    reconcile:
      reconcile === undefined
        ? undefined
        : async (idempotencyKey) => await reconcile({ signal: scope.getSignal(), idempotencyKey }),
    // The body of a once node does not run again with an answer: the node itself is in doubt.
    consult:
      place.keyPrefix === "" && node.policy.effect === "once"
        ? undefined
        : (doubt) => consultAboutStep(session, scope, { key, name }, doubt),
    priorEffects: {
      match: (found) => found.filter(({ row }) => isSameStep(row, { task: task.id, key, name })),
      decode: ({ row }, saved) => decodeOutcome(saved, row) as RecordedOutcome<Value> | undefined,
    },
    execute: async (idempotencyKey) => {
      const stepChanges: LongTermChange[] = [];
      scope.activeSteps += 1;
      try {
        const isFinished = (): boolean => changes === stepChanges || scope.isEnded();
        const longTerm: OpenLongTerm = (...ids) =>
          createStepLongTerm(session.position, session.journal, scope, {
            ids,
            changes: stepChanges,
            isOver: isFinished,
          });
        const result = await work({ signal: scope.getSignal(), idempotencyKey, longTerm });
        changes = stepChanges;
        recordChanges(session.position, session.journal, task, { key, changes: stepChanges });
        return result;
      } catch (error) {
        recordFailure(session.position, session.journal, task, { key, error });
        throw error;
      } finally {
        scope.activeSteps -= 1;
      }
    },
  });
  changes ??= getRecordedChanges(session.position, session.journal, task, key) as LongTermChange[];
  if (changes.length > 0) getChanges(scope).push(...changes);
  scope.sendHeartbeat();
  return deepFreeze(value);
}

function isSameStep(row: EffectRow, { task, key, name }: Pick<EffectRow, "task" | "key" | "name">): boolean {
  return row.task === task && row.key === key && row.kind === "step" && row.name === name;
}

/** Returns the answer about a step in doubt, or raises its interrupt. */
function consultAboutStep<Value>(
  { progress, journal }: Pick<Session, "progress" | "journal">,
  scope: TaskScope,
  step: { readonly key: string; readonly name: string },
  { row: { idempotencyKey, startedAt }, about, prior }: EffectDoubt<Value>,
): DoubtAnswer<Value> | { readonly open: Promise<never> } {
  const { id, node, input } = scope.task;
  const response = scope.consult({
    id: `${id}/${step.key}${prior === undefined ? "" : "/elsewhere"}${stepInDoubtSuffix}`,
    about,
    key: inDoubtKey,
    payload: {
      node,
      step: step.name,
      idempotencyKey,
      startedAt,
      ...(input === undefined ? {} : { input: progress.control.inputs[input] }),
      ...(prior === undefined ? {} : { alreadyOn: prior.branch, ...describeOutcome(journal, prior.outcome) }),
    },
    schema: toJsonSchema(stepInDoubtAnswer),
  });
  if ("open" in response) return { open: scope.suspend([response.open]) };
  const { happened, value } = response.answer as StepInDoubtAnswer;
  return { happened, statesValue: value !== undefined, getValue: () => value as Value };
}

/** Describes the outcome on another branch for the payload of an interrupt. */
function describeOutcome({ redactor }: Journal, outcome: RecordedOutcome | undefined): object {
  if (outcome === undefined) return {};
  return "error" in outcome ? { error: toRedactedRecord(redactor, outcome.error) } : { outcome: outcome.value };
}

function getDeclaredInterrupt(position: Position, node: NodeRecord, key: string): InterruptDeclaration {
  const { interrupts } = position.plan.graph;
  const declared = typeof key === "string" && Object.hasOwn(interrupts, key) ? interrupts[key] : undefined;
  const listed = node.policy.interrupts?.includes(key) ?? true;
  if (declared !== undefined && listed) return declared;
  ignoreRejections(key);
  if (declared !== undefined)
    throw new StatewrightError("unknown_interrupt", {
      what: `the node "${node.name}" in graph "${position.plan.graph.name}" raised the interrupt "${key}", which its interrupts do not list`,
      next: `Add "${key}" to the interrupts of the node`,
      place: getErrorPlace(position, { node: node.name }),
    });
  throw new StatewrightError("unknown_interrupt", {
    what: `the node "${node.name}" raised the interrupt ${describeValue(key)}, which graph "${position.plan.graph.name}" does not declare`,
    next:
      typeof key === "string" && key.length < 100
        ? `Add it to the graph's interrupts: { ${key}: z.object({ … }) }`
        : `Use one of the declared interrupts: ${Object.keys(interrupts)
            .map((known) => `"${known}"`)
            .join(", ")}`,
    place: getErrorPlace(position, { node: node.name }),
  });
}

/**
 * Returns the id of the interrupt that a body raises now: the existing interrupt of this key with the same payload,
 * so that a body which raises its interrupts in another order after a resume gets the matching answers. Another
 * payload is another interrupt: an answer to one payload never counts for a different payload.
 */
function findInterruptId(
  rows: Persistence["interrupts"],
  raisedIds: ReadonlySet<string>,
  idPrefix: string,
  { baseId, payload }: { readonly baseId: string; readonly payload: string },
): string {
  let unusedAnswers = 0;
  for (let n = 1; ; n++) {
    const id = n === 1 ? baseId : `${baseId}:${n}`;
    if (raisedIds.has(id)) continue;
    const row = rows.get(idPrefix + id);
    if (row === undefined) {
      if (unusedAnswers >= maxUnusedAnswers) throw createInterruptChangedError(baseId, unusedAnswers);
      return id;
    }
    if (row.payload === payload) return id;
    if (!isOpen(row)) unusedAnswers += 1;
  }
}

/** Limit of unused answers to one key. A body beyond this limit is treated as showing a new payload on every start. */
const maxUnusedAnswers = 16;

function createInterruptChangedError(baseId: string, answers: number): StatewrightError {
  return new StatewrightError("interrupt_changed", {
    what: `the interrupt "${baseId}" had another payload each time it was raised, so ${answers} answers to it were not used`,
    next: "Use a payload that stays the same when the body restarts: values from the state, from the input, or from a step",
  });
}

/**
 * Rejects an effect of a body that was cancelled, timed out or is suspended. The body may not await this promise any
 * more.
 */
function rejectAbandoned(reason: unknown): Promise<never> {
  const refusal = Promise.reject(reason);
  refusal.catch(ignoreRejection);
  return refusal;
}

function ignoreRejection(): void {
  // The run has already ended the body and reported the reason; a body that still awaits the promise gets the
  // rejection.
}

/** Builds the `invalid_option` error for an invalid argument of a runtime function. */
function createInvalidArgumentError(
  position: Position,
  task: Task,
  what: string,
  { value, expected }: { readonly value: unknown; readonly expected: string },
): StatewrightError {
  ignoreRejections(value);
  return invalidOption({
    where: `${what} of the node "${task.node}"`,
    expected,
    got: value,
    place: getTaskPlace(position, task),
  });
}

/** Validates work and options of a step. A misspelt `effect` would silently repeat the step after a crash. */
function checkStep(
  position: Position,
  task: Task,
  key: string,
  { work, options }: { readonly work: unknown; readonly options: StepOptions },
): Promise<never> | undefined {
  try {
    if (typeof work !== "function")
      throw createInvalidArgumentError(position, task, `the work of the step "${key}"`, {
        value: work,
        expected: "a function",
      });
    if (Object.keys(options).length === 0) return undefined;
    checkStepOptions(task, key, options);
    const { name = key } = options;
    if (typeof name !== "string" || !name.isWellFormed())
      throw createInvalidArgumentError(position, task, `the name of the step "${key}"`, {
        value: name,
        expected: "a string without lone surrogates",
      });
    return undefined;
  } catch (error) {
    return Promise.reject(error);
  }
}

const stepOptionNames = listOptionNames<StepOptions>({ effect: true, name: true, reconcile: true });

function checkStepOptions(task: Task, key: string, options: StepOptions): void {
  const owner = `the step "${key}" of the node "${task.node}"`;
  checkOptions(owner, options, stepOptionNames);
  checkEffect(owner, options.effect);
  const { effect = "idempotent", reconcile } = options;
  if (reconcile === undefined) return;
  if (typeof reconcile !== "function")
    throw invalidOption({ where: `reconcile of ${owner}`, expected: "a function", got: reconcile });
  if (effect !== "once")
    throw invalidOption({
      where: owner,
      expected: 'effect "once" with reconcile',
      got: effect,
      fix: 'Add effect: "once", or remove reconcile: other steps run again under the same idempotency key',
    });
}
