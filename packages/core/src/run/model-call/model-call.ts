/**
 * A model call: a recorded effect whose reply streams on the run's events. After a crash, a finished call is not
 * repeated.
 */

import { argumentBounds, findInvalidData } from "../../base/bounds.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { deepFreeze, describeValue, isPlainObject } from "../../base/json.ts";
import { checkOptions, listOptionNames } from "../../base/options.ts";
import { redactSplitSecrets } from "../../base/redaction/redact-chunks.ts";
import type { Redactor } from "../../base/redaction/redactor.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { AgentTurn, TurnLimit } from "../../define/agent-turn.ts";
import type { ModelCall } from "../../define/model-call.ts";
import { callPolicyNames, checkCallPolicy, type ModelCallPolicy, resolveCallPolicy } from "../../model/call-policy.ts";
import type { AssistantMessage } from "../../model/message.ts";
import type { Model, ModelReply, ModelRequest, ModelTool } from "../../model/model.ts";
import { type AnyModel, isAnyModel } from "../../model/model-source.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { dedupeCallIds } from "../conversation/pending-calls.ts";
import { type EventEmitter, emit } from "../events/events.ts";
import { toEffectUsage } from "../journal/effect-attempts.ts";
import { runRecordedEffect } from "../journal/journal.ts";
import { collectHookChanges } from "../journal/long-term-writes.ts";
import { countTurn, createMessageId, type Position } from "../session/parts/position.ts";
import { mergeMiddleware } from "../session/parts/run-environment.ts";
import { readUpdate, type Write } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import {
  type ChangedRegistries,
  findChangedRegistries,
  getAdvertisedNames,
  rememberTools,
} from "./advertised-tools.ts";
import { runAfterAgentHooks, runBeforeAgentHooks } from "./agent-hooks.ts";
import { createAttemptKey, notifyFailedAttempt, notifyPreviousAttempts } from "./failed-attempt-hooks.ts";
import { createFilteredStream } from "./filtered-stream.ts";
import type { HookPass } from "./hook-pass.ts";
import { createEndingMessage, createHookPass, recordLongTermChanges, releaseReservations } from "./hook-runtime.ts";
import { addWriteList, applyHookWrites } from "./hook-writes.ts";
import { createMessageStream } from "./message-stream.ts";
import { checkReply } from "./model-attempt.ts";
import {
  createModelAttempts,
  findPreviousAttempts,
  type ModelAttempts,
  type PreviousAttempts,
} from "./model-attempts.ts";
import {
  applyAfterModel,
  applyBeforeModel,
  countFailedAttempts,
  notifyOnMessage,
  selectTools,
  wrapAroundModel,
} from "./model-hooks.ts";
import { type ReplyReview, replyReview, sendReviewed } from "./reply-review.ts";
import { createBeforeRequest } from "./request-hooks.ts";

/**
 * Calls a model, or takes a turn of an agent. The message id is derived from the task and the key. Hooks of
 * middleware run inside recorded effects, so a replay runs no hooks.
 */
export async function callModel(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal" | "signals" | "inboxes">,
  scope: TaskScope,
  key: string,
  call: ReviewedCall | AgentTurn,
): Promise<AssistantMessage> {
  const turn = isTurn(call) ? call : undefined;
  if (turn === undefined) checkCall(scope.task, call);
  const middleware = mergeMiddleware(session.env, call.middleware);
  const isHooked = turn !== undefined && middleware.length > 0;
  const ended = isHooked ? await runBeforeAgentHooks(session, scope, key, middleware) : undefined;
  const limit = ended === undefined ? turn?.limit : undefined;
  const message =
    ended ??
    (limit !== undefined && !countTurn(session.position, session.progress, scope.task, limit)
      ? await recordTurnLimitMessage(session, scope.task, key, limit)
      : await generateForCall(session, scope, key, call));
  // Pending tool calls are answered before an agent ends.
  if (isHooked && !message.content.some(({ type }) => type === "call")) {
    const getWrites = (): readonly Write[] =>
      readUpdate(session.position.plan, scope.task.node, { messages: [message] });
    await runAfterAgentHooks(session, scope, key, { middleware, getTaskWrites: getWrites, findAgentEnd: turn.ends });
  }
  scope.sendHeartbeat();
  return deepFreeze(message);
}

/** A model call of a node, or of `generate` with a review of its replies. */
export type ReviewedCall = ModelCall & { readonly [replyReview]?: ReplyReview | undefined };

function isTurn(call: ModelCall | AgentTurn): call is AgentTurn {
  return isPlainObject(call) && "prepare" in call;
}

/** Generates the message. An agent prepares its call from the state after the preceding hooks. */
function generateForCall(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal" | "signals">,
  scope: TaskScope,
  key: string,
  call: ReviewedCall | AgentTurn,
): Promise<AssistantMessage> {
  if (!isTurn(call)) return generateMessage(session, scope, key, call);
  const toModel = (given: AnyModel): Model => session.env.findModel(given, describeCall(scope.task));
  const prepared = call.prepare(applyHookWrites(session.position, session.progress, scope, []) as never, toModel);
  const generate = (modelCall: ModelCall): Promise<AssistantMessage> => {
    checkCall(scope.task, modelCall);
    return generateMessage(session, scope, key, modelCall);
  };
  return prepared instanceof Promise ? prepared.then(generate) : generate(prepared);
}

/**
 * Resolves the policy of a model call. For each part the outermost middleware that sets the part wins, else the call.
 */
function resolvePolicy(task: Task, call: ModelCall, middleware: readonly Middleware[]): ModelCallPolicy {
  checkCallPolicy(describeCall(task), call);
  if (!middleware.some(({ modelCall }) => modelCall !== undefined)) return call;
  const entries = callPolicyNames.map((part) => {
    const source = middleware.find(({ modelCall }) => modelCall?.[part] !== undefined);
    return [part, (source?.modelCall ?? call)[part]];
  });
  return Object.fromEntries(entries);
}

/** A model call whose model is a `Model`. */
interface ResolvedCall {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly review: ReplyReview | undefined;
}

/** Names the call of a node in errors. */
function describeCall({ node }: Task): string {
  return `the model call of the node "${node}"`;
}

/** Recorded outcome of a model call: the message alone when no hook wrote to a channel. */
type RecordedReply = AssistantMessage | { readonly message: AssistantMessage; readonly writes: readonly Write[] };

async function generateMessage(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal" | "signals">,
  scope: TaskScope,
  key: string,
  call: ReviewedCall,
): Promise<AssistantMessage> {
  const { task } = scope;
  const middleware = mergeMiddleware(session.env, call.middleware);
  const hookWrites = middleware.length === 0 ? undefined : addWriteList(scope);
  const toModel = (given: AnyModel): Model => session.env.findModel(given, describeCall(task));
  const policy = resolveCallPolicy(resolvePolicy(task, call, middleware), toModel);
  const resolved: ResolvedCall = { model: toModel(call.model), request: call.request, review: call[replyReview] };
  const previous = findPreviousAttempts(session.position, session.journal, task, key);
  let requests: ModelAttempts | undefined;
  const outcome = await runRecordedEffect<RecordedReply>(session, {
    task,
    key,
    kind: "model",
    name: resolved.model.id,
    effect: "idempotent",
    countAttempts: (value) => countFailedAttempts(getMessage(value)) + (requests?.hasReply() === false ? 0 : 1),
    getUsage: (value) => toEffectUsage(getMessage(value)),
    execute: () => {
      const { model } = resolved;
      if (middleware.length === 0) {
        const attempts = createModelAttempts(session, scope, { primaryModel: model, key, policy, previous });
        const { redactor } = session.env;
        return generateWithoutHooks(session.position, session.events, resolved, { redactor, scope, key, attempts });
      }
      const pass = createHookPass(session, scope, key, { phase: "before", middleware });
      pass.model = model.id;
      const stream = createFilteredStream(
        session.env.world,
        createMessageStream(session.events, session.env.redactor, task, createMessageId(session.position, task, key)),
        middleware,
      );
      const { auxiliaryAttempts } = pass;
      const attempts = createModelAttempts(session, scope, {
        primaryModel: model,
        key,
        policy,
        previous,
        stream,
        auxiliaryAttempts,
        onFailedAttempt: (attempt, nth) => notifyFailedAttempt(pass, attempt, createAttemptKey(nth)),
        beforeRequest: createBeforeRequest(pass),
      });
      requests = attempts;
      return generateWithHooks(pass, resolved, middleware, { attempts, previous }).finally(() =>
        releaseReservations(pass),
      );
    },
    onCommitted: (value, reused) => {
      if (reused) return;
      const message = redactMessage(session.env.redactor, getMessage(value));
      emit(session.events, { type: "message.completed", node: task.node, task: task.id, message });
    },
  });
  if ("writes" in outcome) (hookWrites ?? addWriteList(scope)).push(...deepFreeze(outcome.writes));
  if (middleware.length > 0) collectHookChanges(session.position, session.journal, scope, key);
  return getMessage(outcome);
}

function getMessage(recorded: RecordedReply): AssistantMessage {
  return "writes" in recorded ? recorded.message : recorded;
}

/** Tools of the last request, and the registries that had changed by then. */
interface SentRequest {
  tools: readonly ModelTool[];
  registries: ChangedRegistries;
}

/** Options of `generateWithoutHooks`. */
interface GenerateWithoutHooksOptions {
  readonly redactor: Redactor;
  readonly scope: TaskScope;
  readonly key: string;
  readonly attempts: ModelAttempts;
}

async function generateWithoutHooks(
  position: Position,
  events: EventEmitter,
  { model, request, review }: ResolvedCall,
  { redactor, scope, key, attempts }: GenerateWithoutHooksOptions,
): Promise<AssistantMessage> {
  emitStart(events, scope, model, request);
  const sentRequest: SentRequest = { tools: request.tools, registries: findChangedRegistries(position) };
  const reply = await sendReviewed(attempts.generate, request, review);
  return toAssistantMessage(position, redactor, request, {
    reply,
    sentRequest,
    attempts,
    id: createMessageId(position, scope.task, key),
  });
}

/**
 * Generates the message through all hooks, with their writes. A hook that ends the agent replaces the model's reply.
 */
async function generateWithHooks(
  pass: HookPass,
  call: ResolvedCall,
  middleware: readonly Middleware[],
  { attempts, previous }: { readonly attempts: ModelAttempts; readonly previous: PreviousAttempts },
): Promise<RecordedReply> {
  const { events, position, env, scope, effect } = pass;
  const { model } = call;
  const id = createMessageId(position, scope.task, effect);
  if (previous.attempts.length > 0) await notifyPreviousAttempts(pass, previous.attempts, createAttemptKey);
  const request = await applyBeforeModel(pass, middleware, await selectTools(pass, middleware, call.request));
  if (pass.ending !== undefined)
    return finishRecordedReply(pass, middleware, attempts.finishMessage(createEndingMessage(pass.ending, id)));
  pass.phase = "sent";
  emitStart(events, scope, model, request);
  const sentRequest: SentRequest = { tools: request.tools, registries: findChangedRegistries(position) };
  let isAnswered = false;
  const send = async (outgoing: ModelRequest): Promise<ModelReply> => {
    sentRequest.tools = outgoing.tools;
    sentRequest.registries = findChangedRegistries(position);
    const response = await sendReviewed(attempts.generate, outgoing, call.review);
    isAnswered = true;
    return response;
  };
  const reply = checkReply(model, await wrapAroundModel(pass, middleware, send)(request));
  const reviewed = await applyAfterModel(pass, middleware, reply, (replaced, by) => checkReply(model, replaced, by));
  const { ending } = pass;
  const answer =
    ending === undefined
      ? toAssistantMessage(position, env.redactor, call.request, {
          reply: reviewed,
          sentRequest,
          attempts,
          id,
        })
      : attempts.finishMessage(createEndingMessage(ending, id, reviewed.usage));
  return finishRecordedReply(pass, middleware, answer, isAnswered ? (answer.answeredBy ?? model.id) : undefined);
}

async function finishRecordedReply(
  pass: HookPass,
  middleware: readonly Middleware[],
  message: AssistantMessage,
  answeredBy?: string,
): Promise<RecordedReply> {
  await notifyOnMessage(pass, middleware, message, answeredBy);
  recordLongTermChanges(pass);
  const { writes } = pass;
  return writes.length === 0 ? message : { message, writes };
}

function emitStart(events: EventEmitter, { task }: TaskScope, model: Model, { messages }: ModelRequest): void {
  const { node, id } = task;
  emit(events, { type: "model.started", node, task: id, model: model.id, messages: messages.length });
}

/** Options of `toAssistantMessage`. */
interface ToAssistantMessageOptions {
  readonly reply: ModelReply;
  readonly sentRequest: SentRequest;
  readonly attempts: ModelAttempts;
  readonly id: string;
}

/** Converts a reply to a message, with a note of the advertised tools for its calls. */
function toAssistantMessage(
  position: Position,
  redactor: Redactor,
  originalRequest: ModelRequest,
  { reply, sentRequest, attempts, id }: ToAssistantMessageOptions,
): AssistantMessage {
  const bounded = enforceBounds(redactReply(redactor, reply));
  const hasCalls = bounded.content.some(({ type }) => type === "call");
  // A request without tools adds no note; a request whose tools were all hidden does.
  const advertised =
    hasCalls && originalRequest.tools.length > 0 ? getAdvertisedNames(position, sentRequest.tools) : {};
  const content = hasCalls ? dedupeCallIds(bounded.content) : bounded.content;
  const answer = attempts.finishMessage({ ...bounded, content, ...advertised, role: "assistant", id });
  if (hasCalls) rememberTools(answer, sentRequest.registries);
  return answer;
}

const callNames = listOptionNames<ModelCall>({
  model: true,
  request: true,
  middleware: true,
  timeouts: true,
  retry: true,
  fallback: true,
});

/** Throws for an invalid model or call, e.g. from untyped code. */
function checkCall(task: Task, call: unknown): void {
  const model = isPlainObject(call) ? call["model"] : undefined;
  if (isAnyModel(model) && isPlainObject(call) && isPlainObject(call["request"])) {
    // A misspelt `retry` would otherwise be ignored silently.
    for (const name in call) if (!callNames.includes(name)) checkOptions(describeCall(task), call, callNames);
    return;
  }
  throw invalidOption({
    where: describeCall(task),
    expected: "a model and a request",
    found: isAnyModel(model) ? "a model without a request" : describeValue(model ?? call),
    fix: "Pass { model, request } to model(): a Model, a language model of the AI SDK, or a model name",
  });
}

/**
 * Removes the arguments of calls that exceed the bounds for external data. Such arguments would otherwise be saved
 * and sent with every later request, and arguments nested too deeply cannot be saved.
 */
function enforceBounds(reply: ModelReply): ModelReply {
  const content = reply.content.map((block) => {
    if (block.type !== "call") return block;
    const violation = findInvalidData(block.args, argumentBounds) ?? findInvalidData(block.raw, argumentBounds);
    if (violation?.reason !== "bounds") return block;
    const { raw: _, ...rest } = block;
    return { ...rest, args: {}, refused: violation.text };
  });
  return content.every((block, index) => block === reply.content[index]) ? reply : { ...reply, content };
}

/** Records the message that ends the agent at its turn limit, so that the message is emitted once. */
function recordTurnLimitMessage(
  session: Pick<Session, "env" | "position" | "events" | "journal">,
  task: Task,
  key: string,
  limit: TurnLimit,
): Promise<AssistantMessage> {
  return runRecordedEffect<AssistantMessage>(session, {
    task,
    key: `${key}:maxTurns`,
    kind: "step",
    name: "maxTurns",
    effect: "pure",
    execute: () => createEndingMessage(limit, createMessageId(session.position, task, key)),
    onCommitted: (message, reused) => {
      if (!reused) emit(session.events, { type: "message.completed", node: task.node, task: task.id, message });
    },
  });
}

/**
 * Redacts text and reasoning of a reply before it is saved. A signed reasoning block cannot be changed and is
 * removed.
 */
export function redactReply(
  { redactUncommon, listSecrets, listUncommonSecrets }: Redactor,
  reply: ModelReply,
): ModelReply {
  if (listSecrets().length === 0) return reply;
  const secrets = listUncommonSecrets();
  const cleaned = redactSplitSecrets(redactSplitSecrets(reply.content, secrets), secrets, "reasoning");
  const originalBlocks = cleaned === reply.content ? undefined : new Set(reply.content);
  const content = cleaned.flatMap((block): AssistantMessage["content"] => {
    if (block.type !== "text" && block.type !== "reasoning") return [block];
    const text = redactUncommon(block.text);
    if (text === block.text && originalBlocks?.has(block) !== false) return [block];
    return block.type === "reasoning" && block.provider !== undefined ? [] : [{ ...block, text }];
  });
  return isSameContent(content, reply.content) ? reply : { ...reply, content };
}

/** Redacts the message for events, including the arguments of its tool calls. */
function redactMessage({ redactUncommon, listSecrets }: Redactor, message: AssistantMessage): AssistantMessage {
  if (listSecrets().length === 0) return message;
  const content = message.content.map((block) => {
    if (block.type !== "call") return block;
    const args = redactUncommon(block.args);
    const raw = redactUncommon(block.raw);
    return args === block.args && raw === block.raw ? block : { ...block, args, ...(raw === undefined ? {} : { raw }) };
  });
  return isSameContent(content, message.content) ? message : { ...message, content };
}

function isSameContent(left: AssistantMessage["content"], right: AssistantMessage["content"]): boolean {
  return left.length === right.length && left.every((block, index) => block === right[index]);
}
