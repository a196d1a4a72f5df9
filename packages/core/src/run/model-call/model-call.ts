/** A model call: a recorded effect whose answer streams on the run's events. After a crash a finished call is not made again. */
import { argumentBounds, unfitData } from "../../base/bounds.ts";
import { StatewrightError } from "../../base/errors.ts";
import { deepFreeze, describeValue, isPlainObject } from "../../base/json.ts";
import { checkOptions, optionNames } from "../../base/options.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { AgentTurn, ModelCall } from "../../define/node.ts";
import { callPolicyNames, checkCallPolicy, type ModelCallPolicy } from "../../model/call-policy.ts";
import type { AssistantMessage } from "../../model/message.ts";
import { isModel, type Model, type ModelReply, type ModelRequest, type ModelTool } from "../../model/model.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import {
  type ChangedRegistries,
  changedRegistries,
  offeredNote,
  rememberTools,
} from "../conversation/advertised-tools.ts";
import { withOwnIds } from "../conversation/pending-calls.ts";
import { endTurns, takeTurn } from "../conversation/turns.ts";
import { perform } from "../journal/journal.ts";
import { takeHookChanges } from "../journal/long-term-writes.ts";
import { placeForWrites, stateAsWritten } from "../session/hook-writes.ts";
import { readUpdate, type Write } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import { emit, type Session, withPolicies } from "../session/session.ts";
import { beginAgent, endAgent } from "./agent-hooks.ts";
import { lostKey, tellLost, tellLostBefore } from "./failed-attempt-hooks.ts";
import { type LostBefore, lostBefore } from "./failed-attempts.ts";
import { filteredStream } from "./filtered-stream.ts";
import { endingMessage, giveBack, type HooksAtWork, hooksAtWork, keepChanges } from "./hook-runtime.ts";
import { messageStream } from "./message-stream.ts";
import { checkReply } from "./model-attempt.ts";
import { type ModelAttempts, modelAttempts } from "./model-attempts.ts";
import { afterModel, aroundModel, beforeModel, lostIn, onMessage, selectTools } from "./model-hooks.ts";
import { maskedReply, shownMessage } from "./redact-reply.ts";
import { beforeRequests } from "./request-hooks.ts";

/**
 * Call a model, or take a turn of an agent, and give the answer the id of its place. Hooks of middleware stand inside recorded
 * effects: a replay runs none.
 */
export async function callModel(
  session: Session,
  scope: TaskScope,
  key: string,
  call: ModelCall | AgentTurn,
): Promise<AssistantMessage> {
  const turn = isTurn(call) ? call : undefined;
  if (turn === undefined) checkCall(scope.task, call);
  const middleware = withPolicies(session, call.middleware);
  const isHooked = turn !== undefined && middleware.length > 0;
  const ended = isHooked ? await beginAgent(session, scope, key, middleware) : undefined;
  const limit = ended === undefined ? turn?.limit : undefined;
  const message =
    ended ??
    (limit !== undefined && !takeTurn(session, scope.task, limit)
      ? await endTurns(session, scope.task, key, limit)
      : await askWith(session, scope, key, call));
  // Calls are answered before an agent ends.
  if (isHooked && !message.content.some(({ type }) => type === "call")) {
    const said = (): readonly Write[] => readUpdate(session.plan, scope.task.node, { messages: [message] });
    await endAgent(session, scope, key, middleware, said, turn.ends);
  }
  scope.beat();
  return deepFreeze(message);
}

function isTurn(call: ModelCall | AgentTurn): call is AgentTurn {
  return isPlainObject(call) && "prepare" in call;
}

/** Ask with the call: an agent makes it from the state as the hooks before it have left it. */
function askWith(
  session: Session,
  scope: TaskScope,
  key: string,
  call: ModelCall | AgentTurn,
): Promise<AssistantMessage> {
  if (!isTurn(call)) return askModel(session, scope, key, call);
  const made = call.prepare(stateAsWritten(session, scope, []) as never);
  const ask = (asked: ModelCall): Promise<AssistantMessage> => {
    checkCall(scope.task, asked);
    return askModel(session, scope, key, asked);
  };
  return made instanceof Promise ? made.then(ask) : ask(made);
}

/** How the model is asked: as the outermost middleware says that says so, else as the call does. Each part counts by itself. */
function policyOf({ node }: Task, asked: ModelCall, middleware: readonly Middleware[]): ModelCallPolicy {
  checkCallPolicy(`the model call of the node "${node}"`, asked);
  if (!middleware.some(({ modelCall }) => modelCall !== undefined)) return asked;
  const said = callPolicyNames.map((part) => {
    const by = middleware.find(({ modelCall }) => modelCall?.[part] !== undefined);
    return [part, (by?.modelCall ?? asked)[part]];
  });
  return Object.fromEntries(said);
}

/** The answer as it is recorded: the message alone, where no hook has written anything. */
type Recorded = AssistantMessage | { readonly message: AssistantMessage; readonly writes: readonly Write[] };

async function askModel(session: Session, scope: TaskScope, key: string, asked: ModelCall): Promise<AssistantMessage> {
  const { task } = scope;
  const middleware = withPolicies(session, asked.middleware);
  const place = middleware.length === 0 ? undefined : placeForWrites(scope);
  const policy = policyOf(task, asked, middleware);
  const before = lostBefore(session, task, key);
  const known = await perform<Recorded>(session, {
    task,
    key,
    kind: "model",
    name: asked.model.id,
    effect: "idempotent",
    attempts: (value) => lostIn(messageOf(value)) + 1,
    execute: () => {
      const { model } = asked;
      if (middleware.length === 0)
        return answerPlainly(session, scope, asked, key, modelAttempts(session, scope, model, key, policy, before));
      const at = hooksAtWork(session, scope, key, "before", middleware);
      at.model = model.id;
      const stream = filteredStream(session, messageStream(session, task, `${task.id}:${key}`), middleware);
      const { beside } = at;
      const attempts = modelAttempts(session, scope, model, key, policy, before, {
        stream,
        beside,
        tellLost: (attempt, nth) => tellLost(at, attempt, lostKey(nth)),
        beforeRequest: beforeRequests(at),
      });
      return answerThroughHooks(at, asked, middleware, attempts, before).finally(() => giveBack(at));
    },
    settled: (value, reused) => {
      if (reused) return;
      const message = shownMessage(session.mask, messageOf(value));
      emit(session, { type: "message.completed", node: task.node, task: task.id, message });
    },
  });
  if ("writes" in known) (place ?? placeForWrites(scope)).push(...deepFreeze(known.writes));
  if (middleware.length > 0) takeHookChanges(session, scope, key);
  return messageOf(known);
}

function messageOf(recorded: Recorded): AssistantMessage {
  return "writes" in recorded ? recorded.message : recorded;
}

/** The tools of the request that was sent last, and the registries that had changed by then. */
interface Shown {
  tools: readonly ModelTool[];
  registries: ChangedRegistries;
}

async function answerPlainly(
  session: Session,
  scope: TaskScope,
  { model, request }: ModelCall,
  key: string,
  attempts: ModelAttempts,
): Promise<AssistantMessage> {
  tellStart(session, scope, model, request);
  const shown: Shown = { tools: request.tools, registries: changedRegistries(session) };
  const reply = await attempts.ask(request);
  return answerOf(session, request, reply, shown, attempts, `${scope.task.id}:${key}`);
}

/** The answer as all hooks leave it, and what they have written. A hook that ends the agent answers in the model's place. */
async function answerThroughHooks(
  at: HooksAtWork,
  asked: ModelCall,
  middleware: readonly Middleware[],
  attempts: ModelAttempts,
  before: LostBefore,
): Promise<Recorded> {
  const { session, scope, effect } = at;
  const { model } = asked;
  const id = `${scope.task.id}:${effect}`;
  if (before.attempts.length > 0) await tellLostBefore(at, before.attempts, lostKey);
  const request = await beforeModel(at, middleware, await selectTools(at, middleware, asked.request));
  if (at.ending !== undefined) return recorded(at, middleware, attempts.settled(endingMessage(at.ending, id)));
  at.phase = "sent";
  tellStart(session, scope, model, request);
  const shown: Shown = { tools: request.tools, registries: changedRegistries(session) };
  let isAnswered = false;
  const send = async (sent: ModelRequest): Promise<ModelReply> => {
    shown.tools = sent.tools;
    shown.registries = changedRegistries(session);
    const given = await attempts.ask(sent);
    isAnswered = true;
    return given;
  };
  const reply = checkReply(model, await aroundModel(at, middleware, send)(request));
  const reviewed = await afterModel(at, middleware, reply, (left, by) => checkReply(model, left, by));
  const { ending } = at;
  const answer =
    ending === undefined
      ? answerOf(session, asked.request, reviewed, shown, attempts, id)
      : attempts.settled(endingMessage(ending, id, reviewed.usage));
  return recorded(at, middleware, answer, isAnswered ? (answer.answeredBy ?? model.id) : undefined);
}

async function recorded(
  at: HooksAtWork,
  middleware: readonly Middleware[],
  message: AssistantMessage,
  answeredBy?: string,
): Promise<Recorded> {
  await onMessage(at, middleware, message, answeredBy);
  keepChanges(at);
  const { writes } = at;
  return writes.length === 0 ? message : { message, writes };
}

function tellStart(session: Session, { task }: TaskScope, model: Model, { messages }: ModelRequest): void {
  const { node, id } = task;
  emit(session, { type: "model.started", node, task: id, model: model.id, messages: messages.length });
}

/** The message that a reply becomes, with a note of the tools that its calls may be of. */
function answerOf(
  session: Session,
  asked: ModelRequest,
  reply: ModelReply,
  shown: Shown,
  attempts: ModelAttempts,
  id: string,
): AssistantMessage {
  const bounded = withinBounds(maskedReply(session.mask, reply));
  const calls = bounded.content.some(({ type }) => type === "call");
  // A request that names no tools says nothing of them; one whose tools were all taken away does.
  const offered = calls && asked.tools.length > 0 ? offeredNote(session, shown.tools) : {};
  const content = calls ? withOwnIds(bounded.content) : bounded.content;
  const answer = attempts.settled({ ...bounded, content, ...offered, role: "assistant", id });
  if (calls) rememberTools(answer, shown.registries);
  return answer;
}

const callNames = optionNames<ModelCall>({
  model: true,
  request: true,
  middleware: true,
  timeouts: true,
  retry: true,
  fallback: true,
});

/** A model that cannot be asked, as a program without types may give one. */
function checkCall({ node }: Task, call: unknown): void {
  const model = isPlainObject(call) ? call["model"] : undefined;
  if (isModel(model) && isPlainObject(call) && isPlainObject(call["request"])) {
    // A misspelt retry would be left out in silence.
    for (const name in call)
      if (!callNames.includes(name)) checkOptions(`the model call of the node "${node}"`, call, callNames);
    return;
  }
  throw new StatewrightError("invalid_option", {
    what: isModel(model)
      ? `the node "${node}" asked a model without a request`
      : `the node "${node}" asked ${describeValue(model ?? call)}, which is not a model`,
    next: "Give model({ model, request }), where the model has an id and a function respond",
  });
}

/**
 * Calls whose arguments hold more than is taken from outside stand without them: kept, they would be saved, sent with every
 * further request, and nested too deep they could not even be saved.
 */
function withinBounds(reply: ModelReply): ModelReply {
  const content = reply.content.map((block) => {
    if (block.type !== "call") return block;
    const unfit = unfitData(block.args, argumentBounds) ?? unfitData(block.raw, argumentBounds);
    if (unfit?.why !== "bounds") return block;
    const { raw: _, ...kept } = block;
    return { ...kept, args: {}, refused: unfit.text };
  });
  return content.every((block, index) => block === reply.content[index]) ? reply : { ...reply, content };
}
