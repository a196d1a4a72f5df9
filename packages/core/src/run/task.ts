/** One task: a node's body, run with its policy, until it returns, fails, or asks a person. */
import { disregardPromises } from "../base/disregard.ts";
import {
  describeThrown,
  failureText,
  isError,
  isStatewrightError,
  located,
  StatewrightError,
  toErrorRecord,
} from "../base/errors.ts";
import { deepFreeze, describeValue, isFrozenWrite, isPlainObject } from "../base/json.ts";
import { checkEffect, checkOptions, optionNames } from "../base/options.ts";
import { type RetryPolicy, retryDelayMs, saysYes } from "../base/retry.ts";
import { issuesText, parseWith } from "../base/schema.ts";
import type { Task } from "../checkpoint/checkpoint.ts";
import type { InterruptRow } from "../checkpoint/journal.ts";
import type { NodeRecord, SubgraphRecord } from "../define/graph.ts";
import { answerSchema, expiryOf, type InterruptDeclaration, payloadSchema } from "../define/interrupt.ts";
import type { NodeRuntime, StepOptions } from "../define/node.ts";
import { jsonSchemaOf } from "../tool/model-tool.ts";
import { whenAborted } from "./abort.ts";
import { admit, admitOutcome } from "./admission.ts";
import { expired, timeOf } from "./expiry.ts";
import { type IdleWatch, unwatched, watchIdle } from "./idle.ts";
import { perform, recordFailure } from "./journal.ts";
import { forgetFailure, type LastFailure, savedFailure, saveFailure } from "./last-failure.ts";
import { callModel } from "./model-call.ts";
import { type Consulted, consultCache } from "./node-cache.ts";
import { onceMayNotAsk, runOnce } from "./once.ts";
import { readReturn, type TaskOutcome } from "./returns.ts";
import { identityOf, pause, type Question, type TaskScope } from "./scope.ts";
import { emit, nodesOf, placeOf, type Saved, type Session } from "./session.ts";
import { runToolNode } from "./tool-node.ts";

/** How a task ended. */
export type TaskResult =
  | { readonly kind: "done"; readonly task: Task; readonly outcome: TaskOutcome }
  | { readonly kind: "interrupted"; readonly task: Task; readonly interrupts: readonly InterruptRow[] }
  | { readonly kind: "failed"; readonly task: Task; readonly error: StatewrightError }
  /** Its inner graph stopped at a boundary, as asked. */
  | { readonly kind: "paused"; readonly task: Task; readonly cause: StatewrightError }
  /** Given up because a sibling failed. */
  | { readonly kind: "stopped"; readonly task: Task };

/** Runs the inner graph of a task's node; given from outside, since an inner graph runs tasks. */
export type RunInner = (session: Session, scope: TaskScope, subgraph: SubgraphRecord) => Promise<unknown>;

/** Run one task. Never rejects: a failure is a result. */
export async function runTask(session: Session, task: Task, runInner: RunInner): Promise<TaskResult> {
  const node = session.plan.nodes.get(task.node);
  if (node === undefined) return { kind: "failed", task, error: unknownNode(session, task) };
  if (session.events.listening())
    emit(session, {
      type: "task.started",
      node: task.node,
      task: task.id,
      attempt: 1,
      ...(task.input === undefined ? {} : { input: session.control.inputs[task.input] }),
    });
  const started = session.world.clock.monotonic();
  const { cache, onError, retry = once } = node.policy;
  const known = onError === undefined ? undefined : savedFailure(session, task);
  if (known !== undefined) return failedForGood(session, node, started, known, known);
  let keep: Extract<Consulted, { kind: "miss" }>["keep"] | undefined;
  if (cache !== undefined) {
    try {
      const consulted = await consultCache(session, task, cache);
      if (consulted.kind === "hit")
        return completed(session, { kind: "done", task, outcome: consulted.outcome }, started, true);
      keep = consulted.keep;
    } catch (error) {
      return failedForGood(session, node, started, { ...failed(session, task, 1, error), attempt: 1 });
    }
  }
  for (let attempt = 1; ; attempt++) {
    const result = await runAttempt(
      session,
      task,
      node,
      attempt,
      (_, scope) => callBody(session, scope, runInner),
      node.subgraph !== undefined,
    );
    if (result.kind === "done") {
      keep?.(result.outcome);
      return completed(session, result, started, false);
    }
    if (result.kind !== "failed") return result;
    if (attempt >= retry.attempts || session.halt.aborted || !mayRetry(retry, result.error, attempt))
      return failedForGood(session, node, started, { ...result, attempt });
    const delayMs = retryDelayMs(retry, attempt, session.world.random.next());
    emit(session, {
      type: "task.retried",
      node: task.node,
      task: task.id,
      attempt,
      delayMs,
      error: toErrorRecord(result.error),
    });
    await pause(session, delayMs, session.halt);
  }
}

const once: RetryPolicy = { attempts: 1 };

function completed(
  session: Session,
  result: Extract<TaskResult, { kind: "done" }>,
  started: number,
  reused: boolean,
): TaskResult {
  if (session.events.listening())
    emit(session, {
      type: "task.completed",
      node: result.task.node,
      task: result.task.id,
      durationMs: session.world.clock.monotonic() - started,
      reused,
    });
  return result;
}

/** The last failure of a task. Its node's error handler, where it has one, gives the result in its place; it is asked about no cancel. */
async function failedForGood(
  session: Session,
  node: NodeRecord,
  started: number,
  failure: LastFailure,
  known?: LastFailure,
): Promise<TaskResult> {
  const { onError } = node.policy;
  let result: TaskResult = failure;
  if (onError !== undefined && !session.halt.aborted) {
    result = await handle(session, node, failure, known, onError);
    if (result.kind === "done") return completed(session, result, started, false);
  }
  if (result.kind === "failed")
    emit(session, { type: "task.failed", node: node.name, task: failure.task.id, error: toErrorRecord(result.error) });
  return result;
}

/** What the handler saw is durable before it begins, so that it sees the same after a crash, or when a person has answered it. */
async function handle(
  session: Session,
  node: NodeRecord,
  failure: LastFailure,
  known: LastFailure | undefined,
  onError: NodeRecord["body"],
): Promise<TaskResult> {
  const { task, error, attempt } = failure;
  try {
    if (known === undefined) await saveFailure(session, failure);
  } catch (unsaved) {
    return failed(session, task, attempt, unsaved);
  }
  emit(session, { type: "task.handled", node: task.node, task: task.id, attempt, error: toErrorRecord(error) });
  const result = await runAttempt(session, task, node, attempt, async (_, scope) => {
    const runtime = Object.assign(nodeRuntime(session, scope, handlerKeys), { error });
    return taken(
      session,
      task,
      await handled(session, task, failure, () => onError(session.state as never, runtime as never)),
    );
  });
  if (result.kind !== "failed" || session.halt.aborted) return result;
  forgetFailure(session, task);
  return result;
}

/** What a handler gives; its own failure is told as such, and the one that it was given is not lost. */
async function handled(session: Session, task: Task, failure: LastFailure, handler: () => unknown): Promise<unknown> {
  try {
    return await handler();
  } catch (cause) {
    if (isStatewrightError(cause)) throw cause;
    throw new StatewrightError("node_failed", {
      what: `the error handler of the node "${task.node}" in graph "${session.plan.graph.name}" failed: ${describeThrown(cause)}`,
      next: "Mend the handler, then resume the thread: it begins with the body again, and the failure that it was given is in the details",
      place: placeOf(session, { node: task.node, task: task.id, attempt: failure.attempt }),
      details: { handling: toErrorRecord(failure.error) },
      cause,
    });
  }
}

/** What a body or a handler returned, read and fit to be saved. */
function taken(session: Session, { node }: Task, returned: unknown): TaskOutcome {
  return admitOutcome(session, node, readReturn(session.plan, node, session.state, returned));
}

/** Steps, model calls and questions of an error handler have keys of their own: no result of the body is taken for theirs. */
const handlerKeys = "onError/";

function runAttempt(
  session: Session,
  task: Task,
  node: NodeRecord,
  attempt: number,
  work: (session: Session, scope: TaskScope) => Promise<TaskOutcome>,
  isInner = false,
): Promise<TaskResult> {
  // A tool node does not stop for a sibling: each of its calls gets its answer.
  const halt = node.kind === "tools" ? session.abort.signal : session.halt;
  return new Promise((resolve) => {
    let asked: readonly InterruptRow[] = [];
    let controller: AbortController | undefined;
    let settled = false;
    let given: TaskResult | undefined;
    let cancelTimer: (() => void) | undefined;
    let idle: IdleWatch | undefined;
    let stopListening: (() => void) | undefined;

    const finish = (result: TaskResult): void => {
      if (settled) return;
      settled = true;
      cancelTimer?.();
      idle?.stop();
      stopListening?.();
      resolve(result);
    };
    const leave = (result: TaskResult, reason: unknown): void => {
      finish(result);
      controller?.abort(reason);
    };
    // An inner graph is told, and has stopped before the next attempt begins: both would write the same rows.
    const giveUp = (result: TaskResult, reason: unknown): void => {
      if (!isInner) leave(result, reason);
      else {
        given ??= result;
        controller?.abort(reason);
      }
    };
    const onAbort = (): void => {
      const { reason } = halt;
      // A tool node goes on to its end: its calls stop at the signal, and each still gets its answer.
      if (node.kind === "tools") controller?.abort(reason);
      else giveUp(failed(session, task, attempt, reason), reason);
    };
    const signal = (): AbortSignal => {
      controller ??= new AbortController();
      if (settled || halt.aborted) controller.abort(halt.reason);
      return controller.signal;
    };
    const consult = (asking: Question): ReturnType<TaskScope["consult"]> => {
      const saved = needStore(session, task, asking.key, asking.payload);
      const row = questionRow(session, task, asking);
      const asked = saved.interrupts.get(row.id);
      const known = asked?.about === row.about ? asked : undefined;
      if (known?.answer !== undefined)
        return { answer: deepFreeze(saved.codec.decode(known.answer)), expired: known.expiredAt !== undefined };
      if (known?.expiredAt !== undefined) throw expired(session, known);
      return { open: known ?? row };
    };
    const suspend = (open: readonly InterruptRow[]): Promise<never> => {
      asked = [...asked, ...open];
      if (asked.length === open.length) {
        Promise.resolve().then(() =>
          leave(given ?? { kind: "interrupted", task, interrupts: asked }, new Error("the task waits for a person")),
        );
      }
      return new Promise(() => undefined);
    };
    const refuse = (error: unknown): Promise<never> => {
      leave(given ?? failed(session, task, attempt, error), error);
      return new Promise(() => undefined);
    };
    const rest = (cause: StatewrightError): Promise<never> => {
      leave(given ?? { kind: "paused", task, cause }, cause);
      return new Promise(() => undefined);
    };

    if (halt.aborted) {
      onAbort();
      if (settled) return;
    } else stopListening = whenAborted(halt, onAbort);
    const { timeoutMs, idleTimeoutMs } = node.policy;
    if (timeoutMs !== undefined) {
      cancelTimer = session.world.schedule.after(timeoutMs, () => {
        const error = timedOut(session, task, attempt, `took longer than ${timeoutMs} ms`, "timeoutMs");
        giveUp({ kind: "failed", task, error }, error);
      });
    }
    if (idleTimeoutMs !== undefined) {
      idle = watchIdle(session.world, idleTimeoutMs, () => {
        const said = `gave no sign of life for ${idleTimeoutMs} ms`;
        const error = timedOut(session, task, attempt, said, "idleTimeoutMs, a heartbeat()");
        giveUp({ kind: "failed", task, error }, error);
      });
    }
    const ended = (): boolean => settled;
    const beat = idle?.beat ?? unwatched;
    const scope: TaskScope = { task, node, attempt, signal, ended, beat, consult, suspend, refuse, rest };
    work(session, scope).then(
      (outcome) => {
        if (settled)
          session.world.log("warn", `a late result of "${task.node}" was dropped`, { task: task.id, attempt });
        finish(given ?? { kind: "done", task, outcome });
      },
      (error: unknown) => {
        if (settled && !halt.aborted)
          session.world.log("warn", `a late failure of "${task.node}" was dropped`, {
            task: task.id,
            attempt,
            error: toErrorRecord(error),
          });
        finish(given ?? failed(session, task, attempt, error));
      },
    );
  });
}

async function callBody(session: Session, scope: TaskScope, runInner: RunInner): Promise<TaskOutcome> {
  const { task, node } = scope;
  if (node.subgraph !== undefined) return taken(session, task, await runInner(session, scope, node.subgraph));
  if (node.tools !== undefined) return taken(session, task, await runToolNode(session, scope, node.tools));
  const runtime = nodeRuntime(session, scope, "");
  const body = (): unknown => node.body(session.state as never, runtime as never);
  if (node.policy.effect !== "once" || session.saved === undefined) return taken(session, task, await body());
  return runOnce(session, session.saved, scope, body, (returned) => taken(session, task, returned));
}

/** `space` stands before the keys of what is recorded. */
function nodeRuntime(session: Session, scope: TaskScope, space: string): NodeRuntime & { readonly input: unknown } {
  const { task, node } = scope;
  // Made when first used: of thousands of tasks few take a step or ask a person.
  let keys: Set<string> | undefined;
  let asked: Set<string> | undefined;
  const refused = (key: string): Promise<never> | undefined => {
    if (scope.ended()) return abandoned(scope.signal().reason);
    if (typeof key !== "string") return Promise.reject(unfit(session, task, "a key for a step", key, "Give a text"));
    keys ??= new Set();
    const kept = space === "" && node.policy.onError !== undefined && key.startsWith(handlerKeys);
    if (keys.has(key) || key === "" || kept) return Promise.reject(unfitKey(session, task, key, kept));
    keys.add(key);
    return undefined;
  };
  const runtime: Omit<NodeRuntime, "signal"> & { readonly input: unknown; readonly [signalOf]: () => AbortSignal } = {
    context: session.context,
    run: identityOf(session, task),
    attempt: scope.attempt,
    clock: session.world.clock,
    input: task.input === undefined ? undefined : session.control.inputs[task.input],
    [signalOf]: scope.signal,
    interrupt: (async (key: string, options: { readonly payload?: unknown } = {}) => {
      let question: Question;
      try {
        checkOptions(`the interrupt ${describeValue(key)} of the node "${task.node}"`, options, ["payload"]);
        const declared = declaredInterrupt(session, node, key);
        if (space === "" && node.policy.effect === "once") throw onceMayNotAsk(session, task, key);
        const { interrupts, codec } = needStore(session, task, key, options.payload);
        const payload = readPayload(session, task, key, declared, options.payload);
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
      const refusal = refused(key) ?? unfitStep(session, task, key, work, options);
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
      if (typeof name !== "string") throw unfit(session, task, "an event the name", name, "Give a text");
      admit(session.codec, payload, `the event "${name}"`, placeOf(session, { node: task.node, task: task.id }));
      emit(session, { type: "custom", node: task.node, task: task.id, name, payload });
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
  work: (at: { readonly signal: AbortSignal; readonly idempotencyKey: string }) => Value | Promise<Value>,
  options: StepOptions,
): Promise<Value> {
  const { effect = "idempotent", name = key } = options;
  const { task } = scope;
  const value = await perform<Value>(session, {
    task,
    key,
    kind: "step",
    name,
    effect,
    abandoned: scope.ended,
    execute: async (idempotencyKey) => {
      try {
        return await work({ signal: scope.signal(), idempotencyKey });
      } catch (error) {
        recordFailure(session, task, key, error);
        throw error;
      }
    },
  });
  scope.beat();
  return deepFreeze(value);
}

const programming: ReadonlySet<string> = new Set([
  "TypeError",
  "ReferenceError",
  "SyntaxError",
  "RangeError",
  "EvalError",
]);

function mayRetry(retry: RetryPolicy, error: StatewrightError, attempt: number): boolean {
  const original = error.code === "node_failed" ? error.cause : error;
  if (retry.on !== undefined) return saysYes(retry.on, original, attempt);
  if (isStatewrightError(original, "model_failed"))
    return isPlainObject(original.details) && original.details["retryable"] === true;
  if (isStatewrightError(original)) return original.code === "task_timeout";
  return !(isError(original) && programming.has(original.name));
}

function failed(
  session: Session,
  task: Task,
  attempt: number,
  thrown: unknown,
): Extract<TaskResult, { kind: "failed" }> {
  return { kind: "failed", task, error: nodeFailed(session, task, attempt, thrown) };
}

function nodeFailed(session: Session, task: Task, attempt: number, thrown: unknown): StatewrightError {
  const place = placeOf(session, { node: task.node, task: task.id, attempt });
  if (isStatewrightError(thrown)) return located(thrown, place);
  return new StatewrightError("node_failed", {
    what: `the node "${task.node}" in graph "${session.plan.graph.name}" failed: ${failureText(thrown)}`,
    next: isFrozenWrite(thrown)
      ? "State is read-only: return the change, or use update((draft) => …); then resume the thread"
      : "Mend what its cause says, then resume the thread: finished work is kept",
    place,
    cause: thrown,
  });
}

function timedOut(session: Session, task: Task, attempt: number, said: string, more: string): StatewrightError {
  return new StatewrightError("task_timeout", {
    what: `the node "${task.node}" in graph "${session.plan.graph.name}" ${said}`,
    next: `Give it more ${more}, or a retry`,
    place: placeOf(session, { node: task.node, task: task.id, attempt }),
  });
}

function unknownNode(session: Session, task: Task): StatewrightError {
  return new StatewrightError("graph_changed", {
    what: `the thread "${session.run.thread}" waits in the node "${task.node}", which graph "${session.plan.graph.name}" does not have any more`,
    next: "Bring the node back under its name, or fork from an earlier checkpoint",
    place: placeOf(session, { node: task.node }),
  });
}

function needStore(session: Session, task: Task, key: string, payload: unknown): Saved {
  if (session.saved !== undefined) return session.saved;
  disregardPromises(payload);
  throw new StatewrightError("missing_store", {
    what: `the node "${task.node}" asked a person "${key}" in a run without a store`,
    next: "Give the run a store: memoryStore() or sqliteStore(path)",
    place: placeOf(session, { node: task.node }),
  });
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

function readPayload(
  session: Session,
  task: Task,
  key: string,
  declared: InterruptDeclaration,
  payload: unknown,
): unknown {
  const schema = payloadSchema(declared);
  if (schema === undefined) return payload ?? null;
  const parsed = parseWith(schema, payload);
  if (parsed.ok) return parsed.value;
  throw new StatewrightError("invalid_update", {
    what: `the node "${task.node}" asked "${key}" with a payload that its schema refuses: ${issuesText(parsed.issues)}`,
    next: "Show what the interrupt declares",
    place: placeOf(session, { node: task.node }),
    details: parsed.issues,
    cause: parsed.cause,
  });
}

/**
 * The id of the question that a body asks now: of several of one key the one that showed the same, so that a body which
 * asks them in another order after a resume gets each answer where it belongs; else the next in order.
 */
function nextQuestion(
  rows: Saved["interrupts"],
  asked: ReadonlySet<string>,
  above: string,
  own: string,
  payload: string,
): string {
  const nth = (n: number): string => (n === 1 ? own : `${own}:${n}`);
  let next = 1;
  while (asked.has(nth(next))) next++;
  if (!rows.has(above + nth(2))) return nth(next);
  for (let n = 1; ; n++) {
    const row = rows.get(above + nth(n));
    if (row === undefined) return nth(next);
    if (row.payload === payload && !asked.has(nth(n))) return nth(n);
  }
}

/** The row of a question. An inner graph's stands with the task of the outermost one, whose resume brings the answer. */
function questionRow(
  session: Session,
  task: Task,
  { id, key, payload, schema, about, expiry }: Question,
): InterruptRow {
  const { within, run, step, codec, world } = session;
  const path = within === undefined ? "" : `${nodesOf(within)}.`;
  const raisedAt = world.clock.now();
  return {
    id: `${within?.ids ?? ""}${id}`,
    branch: run.branch,
    step: within?.step ?? step,
    task: within?.task ?? task.id,
    node: path + task.node,
    key: path + key,
    payload: codec.encode(payload, `the payload of the interrupt "${key}"`),
    schema,
    raisedAt,
    ...(about === undefined ? {} : { about }),
    ...timeOf(codec, expiry, key, raisedAt),
  };
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
    if (Object.keys(options).length > 0) checkStepOptions(task, key, options);
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

function unfitKey(session: Session, task: Task, key: string, kept: boolean): StatewrightError {
  const twice = key === "" ? "used an empty step key" : `used the step key "${key}" twice in one task`;
  return new StatewrightError("repeated_step", {
    what: `the node "${task.node}" ${kept ? `used the step key "${key}", which is kept for its error handler` : twice}`,
    next: "Give each step of a task a key of its own, such as one with the item's id",
    place: placeOf(session, { node: task.node, task: task.id }),
  });
}
