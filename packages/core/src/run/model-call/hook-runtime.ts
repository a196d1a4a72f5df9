/**
 * Runtime of model hooks: state including their own writes, channel writes, interrupts, auxiliary model calls, and
 * the end of the agent.
 */

import { StatewrightError } from "../../base/errors.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { describeValue, isPlainObject } from "../../base/json.ts";
import { checkOptions } from "../../base/options.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { AgentEnd, AssistantMessage, Message, Usage } from "../../model/message.ts";
import { toJsonSchema } from "../../tool/definition/model-tool.ts";
import {
  checkExpiry,
  type Expiry,
  getAnswerSchema,
  type InterruptDeclaration,
  parseExpiry,
} from "../../tool/policy/interrupt.ts";
import type { AuxiliaryCall, HookInterrupt, Middleware, ModelHookRuntime } from "../../tool/policy/middleware.ts";
import { readPayload } from "../conversation/interrupt-payload.ts";
import { cancelStart } from "../journal/commit-start.ts";
import { createStepLongTerm, recordChanges } from "../journal/long-term-writes.ts";
import { createHookRuntime } from "../journal/middleware-runtime.ts";
import { getErrorPlace, getInterruptIdPrefix } from "../session/parts/position.ts";
import type { State, Write } from "../session/returns.ts";
import type { InterruptRequest, TaskScope } from "../session/scope.ts";
import type { Lineage, Session } from "../session/session.ts";
import { checkReducers } from "../session/validate-writes.ts";
import { requireStore } from "../task/attempt.ts";
import { createOnceInterruptError } from "../task/once.ts";
import { callAuxiliaryModel } from "./auxiliary-model-call.ts";
import type { HookParts, HookPass } from "./hook-pass.ts";
import { applyHookWrites, readHookWrites } from "./hook-writes.ts";

/** Options of `createHookPass`. */
interface CreateHookPassOptions {
  readonly phase: HookPass["phase"];
  readonly middleware: readonly Middleware[];
  readonly taskWrites?: readonly Write[] | undefined;
}

/** Creates a pass that starts with the first hook. */
export function createHookPass(
  { env, position, progress, events, journal, signals }: HookParts,
  scope: TaskScope,
  effect: string,
  { phase, middleware, taskWrites = [] }: CreateHookPassOptions,
): HookPass {
  const defaults = {
    writes: [],
    auxiliaryAttempts: [],
    longTerm: [],
    isFinished: false,
    usedIds: new Set<string>(),
    model: undefined,
    ending: undefined,
  };
  const parts = { env, position, progress, events, journal, signals };
  const reservations = new Set<() => void>();
  return { ...parts, scope, effect, middleware, taskWrites, phase, reservations, ...defaults };
}

/** Journals the long-term changes of the hooks, before the outcome of their effect. */
export function recordLongTermChanges(pass: HookPass): void {
  const { position, journal, scope, effect, longTerm } = pass;
  pass.isFinished = true;
  recordChanges(position, journal, scope.task, { key: effect, changes: longTerm });
}

/** Creates the runtime for the hooks of a middleware. */
export function createModelHookRuntime(pass: HookPass, middleware: Middleware): ModelHookRuntime {
  const { position, env, journal, progress, scope } = pass;
  const isFinished = (): boolean => pass.isFinished || scope.isEnded();
  let cached: { readonly writes: number; readonly state: State } | undefined;
  return Object.defineProperty(
    {
      ...createHookRuntime(pass, scope, pass.effect, { middleware, reservations: pass.reservations }),
      model: pass.model,
      write: (update: Readonly<Record<string, unknown>>) => {
        const writes = readHookWrites(position, scope, middleware, { codec: env.codec, update });
        if (pass.phase === "final") checkMessagesAfterEnd(pass, middleware, writes);
        const getState = (): State => applyHookWrites(position, progress, scope, [...pass.taskWrites, ...pass.writes]);
        checkReducers(position.plan, env.codec, { task: scope.task, writes, getState });
        pass.writes.push(...writes);
      },
      end: (text: string, ended: AgentEnd): undefined => {
        pass.ending ??= parseEnding(pass, middleware, text, ended);
      },
      ask: (key: string, call: AuxiliaryCall) => callAuxiliaryModel(pass, middleware, key, call),
      longTerm: (...ids: readonly string[]) =>
        createStepLongTerm(position, journal, scope, {
          ids,
          changes: pass.longTerm,
          isOver: isFinished,
        }),
      interrupt: ((key: string, options?: HookInterrupt) =>
        raiseInterrupt(pass, middleware, key, options)) as ModelHookRuntime["interrupt"],
    },
    "state",
    {
      enumerable: true,
      get: () => {
        if (cached?.writes !== pass.writes.length)
          cached = {
            writes: pass.writes.length,
            state: applyHookWrites(position, progress, scope, [...pass.taskWrites, ...pass.writes]),
          };
        return cached.state;
      },
    },
  );
}

/** Releases the reservations of an effect that did not finish. */
export function releaseReservations({ reservations }: HookPass): void {
  for (const release of [...reservations]) release();
}

/**
 * Creates the assistant message that ends the agent instead of a model reply. The usage of a discarded reply is
 * included.
 */
export function createEndingMessage(
  { text, ended }: NonNullable<HookPass["ending"]>,
  id: string,
  usage?: Usage,
): AssistantMessage {
  return {
    role: "assistant",
    id,
    content: [{ type: "text", text }],
    finish: "stop",
    ...(usage === undefined ? {} : { usage }),
    ended,
  };
}

function parseEnding(pass: HookPass, { name }: Middleware, text: unknown, ended: unknown): HookPass["ending"] {
  const { by, reason } = isPlainObject(ended) ? ended : {};
  const isValid = typeof text === "string" && typeof by === "string" && ["string", "undefined"].includes(typeof reason);
  if (isValid && pass.phase !== "ended" && pass.phase !== "final") {
    checkOptions(`the end by the middleware "${name}"`, ended, ["by", "reason"]);
    return { text, ended: { by, ...(typeof reason === "string" ? { reason } : {}) } };
  }
  ignoreRejections(text);
  throw invalidOption({
    where: `end in the middleware "${name}"`,
    expected: isValid ? "an agent that has not ended" : "a text and an object { by, reason }",
    found: isValid ? "an agent that had already ended" : `${describeValue(text)} and ${describeValue(ended)}`,
    fix: isValid
      ? "Write to its messages, or return { messages } to continue the agent"
      : 'Use end("the text of the answer", { by: "who", reason: "why" })',
    place: getErrorPlace(pass.position, { node: pass.scope.task.node }),
  });
}

/**
 * Throws when a hook writes a message after an end made by a hook or a limit, because that message would continue the
 * agent.
 */
function checkMessagesAfterEnd(
  { position, progress, scope, taskWrites, writes: before }: HookPass,
  { name }: Middleware,
  writes: readonly Write[],
): void {
  const messages = applyHookWrites(position, progress, scope, [...taskWrites, ...before, ...writes])[
    "messages"
  ] as readonly Message[];
  if (getAgentEnd(messages) !== undefined) return;
  const by = getAgentEnd(applyHookWrites(position, progress, scope, taskWrites)["messages"] as readonly Message[])?.by;
  throw new StatewrightError("invalid_update", {
    what: `the middleware "${name}" wrote messages after the agent was ended by "${by}", which is final`,
    next: "Edit the message that ends the agent, or write messages only when ended.by is undefined",
    place: getErrorPlace(position, { node: scope.task.node, channel: "messages" }),
  });
}

/** Returns the end made by a hook or a limit when the last message of the conversation has one. */
export function getAgentEnd(messages: readonly Message[]): AgentEnd | undefined {
  const last = messages[messages.length - 1];
  return last?.role === "assistant" ? last.ended : undefined;
}

async function raiseInterrupt(
  pass: HookPass,
  middleware: Middleware,
  key: string,
  options: HookInterrupt = {},
): Promise<unknown> {
  const { position, journal, scope, effect } = pass;
  let request: InterruptRequest;
  try {
    request = parseInterrupt(pass, middleware, key, options);
  } catch (error) {
    releaseReservations(pass);
    cancelStart(position, journal, scope.task, effect);
    return scope.fail(error);
  }
  const found = scope.consult(request);
  if ("answer" in found) return found.answer;
  // No request was sent: the effect starts when the answer exists.
  releaseReservations(pass);
  cancelStart(position, journal, scope.task, effect);
  return scope.suspend([found.open]);
}

function parseInterrupt(pass: HookPass, middleware: Middleware, key: string, options: HookInterrupt): InterruptRequest {
  const { name, inherited } = middleware;
  const { position, journal, scope, effect, usedIds } = pass;
  const { task } = scope;
  const owner = `the interrupt ${describeValue(key)} of the middleware "${name}"`;
  if (pass.phase !== "before") throw createTooLateError(pass, owner);
  checkOptions(owner, options, ["payload", "expiresMs", "onExpire"]);
  const declared = getDeclaration(pass, name, key);
  if (scope.node.policy.effect === "once") throw createOnceInterruptError(position, task, key);
  const { codec } = requireStore(position, journal, task, { key, payload: options.payload });
  const payload = readPayload(`the middleware "${name}"`, key, declared, {
    payload: options.payload,
    place: getErrorPlace(position, { node: task.node }),
  });
  codec.encode(payload, `the payload of ${owner}`);
  const baseId = inherited === true ? `${name}:${key}` : `${task.id}/${effect}/${name}:${key}`;
  let id = baseId;
  for (let count = 2; usedIds.has(id); count++) id = `${baseId}:${count}`;
  usedIds.add(id);
  const place = inherited === true ? locateInterrupt(scope.session, task, key, id) : undefined;
  const expiry = resolveExpiry(owner, declared, options);
  return { id, sharedId: place, key, payload, schema: toJsonSchema(getAnswerSchema(declared)), expiry };
}

/** Returns the declaration of an interrupt in the graph or in one of its parent graphs. */
function getDeclaration({ position, scope }: HookPass, middleware: string, key: unknown): InterruptDeclaration {
  const { name } = position.plan.graph;
  const declared = typeof key === "string" ? findDeclaration(scope.session, key) : undefined;
  const { node } = scope;
  if (declared !== undefined && (node.policy.interrupts?.includes(key as string) ?? true)) return declared;
  ignoreRejections(key);
  const subject = `the middleware "${middleware}" of the node "${node.name}" in graph "${name}" raised the interrupt ${describeValue(key)}`;
  throw new StatewrightError("unknown_interrupt", {
    what:
      declared === undefined
        ? `${subject}, which the graph does not declare`
        : `${subject}, which the interrupts of the node do not list`,
    next:
      declared === undefined
        ? "Add the interrupts of the middleware to those of the graph: interrupts: { …, ...middleware.interrupts }"
        : `Add ${describeValue(key)} to the interrupts of the node`,
    place: getErrorPlace(position, { node: node.name }),
  });
}

function findDeclaration(session: Session, key: string): InterruptDeclaration | undefined {
  for (let at: Session | undefined = session; at !== undefined; at = at.lineage.parent?.session) {
    const { interrupts } = at.position.plan.graph;
    if (Object.hasOwn(interrupts, key)) return interrupts[key];
  }
  return undefined;
}

/**
 * Returns the location of an interrupt raised by inherited middleware: the task of the outermost graph that declares
 * the interrupt.
 */
function locateInterrupt(session: Session, task: Task, key: string, id: string): string {
  let declaring = { session, task };
  for (let level: Lineage["parent"] = declaring; level !== undefined; level = level.session.lineage.parent)
    if (Object.hasOwn(level.session.position.plan.graph.interrupts, key)) declaring = level;
  return `${getInterruptIdPrefix(declaring.session.position)}${declaring.task.id}/${id}`;
}

/** Returns the expiry of the interrupt: from the hook, else from the declaration. */
function resolveExpiry(
  owner: string,
  declared: InterruptDeclaration,
  { expiresMs, onExpire }: HookInterrupt,
): Expiry | undefined {
  if (expiresMs === undefined && onExpire === undefined) return parseExpiry(declared);
  const merged = {
    ...("answer" in declared ? declared : { answer: declared }),
    ...(expiresMs === undefined ? {} : { expiresMs }),
    ...(onExpire === undefined ? {} : { onExpire }),
  };
  checkExpiry(owner, merged);
  return parseExpiry(merged);
}

function createTooLateError({ position, scope }: HookPass, owner: string): StatewrightError {
  return invalidOption({
    where: owner,
    expected: "a call before the model request is sent",
    found: "a call after the model request was sent",
    fix: "Use interrupt in beforeAgent, selectTools or beforeModel",
    place: getErrorPlace(position, { node: scope.task.node }),
  });
}
