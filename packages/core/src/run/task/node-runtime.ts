/** What a node's body gets beside the state: context, questions, recorded steps, model calls, signs of life. */

import { StatewrightError } from "../../base/errors.ts";
import { disregardPromises } from "../../base/ignore-rejections.ts";
import { deepFreeze, describeValue } from "../../base/json.ts";
import type { OpenLongTerm } from "../../base/long-term.ts";
import { checkEffect, checkOptions, optionNames } from "../../base/options.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { isOpen } from "../../checkpoint/journal.ts";
import type { NodeRecord } from "../../define/graph.ts";
import type { NodeRuntime, StepOptions, StepRuntime } from "../../define/node.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import { jsonSchemaOf } from "../../tool/definition/model-tool.ts";
import { answerSchema, expiryOf, type InterruptDeclaration } from "../../tool/policy/interrupt.ts";
import { readPayload } from "../conversation/interrupt-payload.ts";
import { perform, recordFailure } from "../journal/journal.ts";
import {
  changesOf,
  longTermOfStep,
  longTermOfTask,
  recordChanges,
  recordedChanges,
} from "../journal/long-term-writes.ts";
import { callModel } from "../model-call/model-call.ts";
import { identityOf, type Question, type TaskScope } from "../session/scope.ts";
import { emit, placeOf, type Saved, type Session } from "../session/session.ts";
import { takeForBody } from "../session/step-keys.ts";
import { needStore } from "./attempt.ts";
import { tellCustom } from "./custom-event.ts";
import { onceMayNotAsk } from "./once.ts";

const half = /\p{Surrogate}/u;

/** `space` stands before the keys of what is recorded. */
export function nodeRuntime(
  session: Session,
  scope: TaskScope,
  space: string,
): NodeRuntime & { readonly input: unknown } {
  const { task, node } = scope;
  // Made when first used: of thousands of tasks few take a step or ask a person.
  let asked: Set<string> | undefined;
  const refused = (key: string, name?: string): Promise<never> | undefined => {
    if (scope.ended()) return abandoned(scope.signal().reason);
    // In a database two halves of characters would be one and the same.
    if (typeof key !== "string" || half.test(key))
      return Promise.reject(unfit(session, task, "a key for a step", key, "Give a text of whole characters"));
    const unfitted = takeForBody(session, scope, space, key, name);
    if (unfitted !== undefined) return Promise.reject(unfitted);
    return undefined;
  };
  const runtime: Omit<NodeRuntime, "signal"> & { readonly input: unknown; readonly [signalOf]: () => AbortSignal } = {
    context: session.context,
    run: identityOf(session, task),
    attempt: scope.attempt,
    clock: session.world.clock,
    input: task.input === undefined ? undefined : session.control.inputs[task.input],
    [signalOf]: scope.signal,
    longTerm: (...ids) => longTermOfTask(session, scope, ids),
    interrupt: (async (key: string, options: { readonly payload?: unknown } = {}) => {
      let question: Question;
      try {
        checkOptions(`the interrupt ${describeValue(key)} of the node "${task.node}"`, options, ["payload"]);
        const declared = declaredInterrupt(session, node, key);
        if (space === "" && node.policy.effect === "once") throw onceMayNotAsk(session, task, key);
        const { interrupts, codec } = needStore(session, task, key, options.payload);
        const payload = readPayload(
          `the node "${task.node}"`,
          key,
          declared,
          options.payload,
          placeOf(session, { node: task.node }),
        );
        const text = codec.encode(payload, `the payload of the interrupt "${key}"`);
        const own = space === "" ? `${task.id}:${key}` : `${task.id}/${space}${key}`;
        asked ??= new Set();
        const id = nextQuestion(interrupts, asked, session.within?.ids ?? "", own, text);
        asked.add(id);
        question = { id, key, payload, schema: jsonSchemaOf(answerSchema(declared)), expiry: expiryOf(declared) };
      } catch (error) {
        return scope.refuse(error);
      }
      const found = scope.consult(question);
      return "answer" in found ? found.answer : scope.suspend([found.open]);
    }) as NodeRuntime["interrupt"],
    step: (key, work, options = {}) => {
      const refusal = refused(key, options.name ?? key) ?? unfitStep(session, task, key, work, options);
      if (refusal !== undefined) return refusal;
      return runStep(session, scope, space + key, work, { name: key, ...options });
    },
    model: (call, key = "model") => {
      const refusal = refused(key);
      if (refusal !== undefined) return refusal;
      return callModel(session, scope, space + key, call);
    },
    progress: (text) => {
      scope.beat();
      if (typeof text !== "string") throw unfit(session, task, "progress", text, "Give a line of text");
      emit(session, { type: "node.progress", node: task.node, task: task.id, text });
    },
    emit: (name, payload) => {
      scope.beat();
      tellCustom(session, task, name, payload);
    },
    heartbeat: scope.beat,
  };
  return Object.defineProperty(runtime, "signal", lateSignal) as typeof runtime & Pick<NodeRuntime, "signal">;
}

const signalOf: unique symbol = Symbol("signal");

/** Makes the signal when it is asked for. One getter for all: with a getter of its own each runtime would be a hash table. */
const lateSignal: PropertyDescriptor & ThisType<{ readonly [signalOf]: () => AbortSignal }> = {
  enumerable: true,
  get() {
    return this[signalOf]();
  },
};

async function runStep<Value>(
  session: Session,
  scope: TaskScope,
  key: string,
  work: (at: StepRuntime) => Value | Promise<Value>,
  options: StepOptions,
): Promise<Value> {
  const { effect = "idempotent", name = key } = options;
  const { task } = scope;
  let changes: LongTermChange[] | undefined;
  const value = await perform<Value>(session, {
    task,
    key,
    kind: "step",
    name,
    effect,
    abandoned: scope.ended,
    execute: async (idempotencyKey) => {
      const made: LongTermChange[] = [];
      scope.stepsAtWork += 1;
      try {
        const isOver = (): boolean => changes === made || scope.ended();
        const longTerm: OpenLongTerm = (...ids) => longTermOfStep(session, scope, ids, made, isOver);
        const done = await work({ signal: scope.signal(), idempotencyKey, longTerm });
        changes = made;
        recordChanges(session, task, key, made);
        return done;
      } catch (error) {
        recordFailure(session, task, key, error);
        throw error;
      } finally {
        scope.stepsAtWork -= 1;
      }
    },
  });
  changes ??= recordedChanges(session, task, key) as LongTermChange[];
  if (changes.length > 0) changesOf(scope).push(...changes);
  scope.beat();
  return deepFreeze(value);
}

function declaredInterrupt(session: Session, node: NodeRecord, key: string): InterruptDeclaration {
  const { interrupts } = session.plan.graph;
  const declared = typeof key === "string" && Object.hasOwn(interrupts, key) ? interrupts[key] : undefined;
  const listed = node.policy.asks?.includes(key) ?? true;
  if (declared !== undefined && listed) return declared;
  disregardPromises(key);
  if (declared !== undefined)
    throw new StatewrightError("unknown_interrupt", {
      what: `the node "${node.name}" in graph "${session.plan.graph.name}" asked "${key}", which its asks do not list`,
      next: `Add "${key}" to the asks of the node`,
      place: placeOf(session, { node: node.name }),
    });
  throw new StatewrightError("unknown_interrupt", {
    what: `the node "${node.name}" asked ${describeValue(key)}, which graph "${session.plan.graph.name}" does not declare`,
    next:
      typeof key === "string" && key.length < 100
        ? `Add it to the graph's interrupts: { ${key}: z.object({ … }) }`
        : `Ask one of its questions: ${Object.keys(interrupts)
            .map((known) => `"${known}"`)
            .join(", ")}`,
    place: placeOf(session, { node: node.name }),
  });
}

/**
 * The id of the question that a body asks now: of those of its key the one that showed the same, so that a body which asks in
 * another order after a resume gets each answer where it belongs. One that shows something else is another question: no
 * answer that was given to what somebody saw counts for what nobody saw.
 */
function nextQuestion(
  rows: Saved["interrupts"],
  asked: ReadonlySet<string>,
  above: string,
  own: string,
  payload: string,
): string {
  let passedOver = 0;
  for (let n = 1; ; n++) {
    const id = n === 1 ? own : `${own}:${n}`;
    if (asked.has(id)) continue;
    const row = rows.get(above + id);
    if (row === undefined) {
      if (passedOver >= mostPassedOver) throw everChanging(own, passedOver);
      return id;
    }
    if (row.payload === payload) return id;
    if (!isOpen(row)) passedOver += 1;
  }
}

/** So many answers to one key are left unused before a body is taken for one that shows something new each time. */
const mostPassedOver = 16;

function everChanging(own: string, answers: number): StatewrightError {
  return new StatewrightError("question_changed", {
    what: `the question "${own}" showed something else each time it was asked, so that ${answers} answers to it count for nothing`,
    next: "Show only what stays the same when the body starts again: what comes from the state, from the input, or from a step",
  });
}

/** A body that was cancelled, timed out or waits for a person starts no further effect. It may not be listening any more. */
function abandoned(reason: unknown): Promise<never> {
  const refusal = Promise.reject(reason);
  refusal.catch(toldToNobody);
  return refusal;
}

function toldToNobody(): void {
  // The run has ended the body already and told why; a body that does listen still gets the rejection.
}

/** What a body gave one of the functions of its runtime, and cannot mean. */
function unfit(session: Session, task: Task, what: string, given: unknown, next: string): StatewrightError {
  disregardPromises(given);
  return new StatewrightError("invalid_option", {
    what: `the node "${task.node}" gave ${what} ${describeValue(given)}`,
    next,
    place: placeOf(session, { node: task.node, task: task.id }),
  });
}

/** A misspelt `effect` would be repeated after a crash in silence. */
function unfitStep(
  session: Session,
  task: Task,
  key: string,
  work: unknown,
  options: StepOptions,
): Promise<never> | undefined {
  try {
    if (typeof work !== "function")
      throw unfit(session, task, `the step "${key}"`, work, "Give a function that does it");
    if (Object.keys(options).length === 0) return undefined;
    checkStepOptions(task, key, options);
    const { name = key } = options;
    if (typeof name !== "string" || half.test(name))
      throw unfit(session, task, `a name for the step "${key}"`, name, "Give a text of whole characters");
    return undefined;
  } catch (error) {
    return Promise.reject(error);
  }
}

const stepNames = optionNames<StepOptions>({ effect: true, name: true });

function checkStepOptions(task: Task, key: string, options: StepOptions): void {
  const owner = `the step "${key}" of the node "${task.node}"`;
  checkOptions(owner, options, stepNames);
  checkEffect(owner, options.effect);
}
