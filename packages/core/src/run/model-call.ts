/** A model call: a recorded effect whose answer streams on the run's events. After a crash a finished call is not made again. */
import { argumentBounds, unfitData } from "../base/bounds.ts";
import { disregardPromises } from "../base/disregard.ts";
import { describeThrown, isStatewrightError, StatewrightError } from "../base/errors.ts";
import { deepFreeze, describeValue, isPlainObject } from "../base/json.ts";
import type { SchemaIssue } from "../base/schema.ts";
import type { Task } from "../checkpoint/checkpoint.ts";
import type { ModelCall } from "../define/node.ts";
import { type AssistantMessage, messageIssue } from "../model/message.ts";
import {
  isModel,
  type Model,
  type ModelFailure,
  type ModelReply,
  type ModelRequest,
  type ModelTool,
} from "../model/model.ts";
import type { Middleware, MiddlewareRuntime } from "../tool/middleware.ts";
import { perform } from "./journal.ts";
import { wireFor } from "./model-wire.ts";
import { type ChangedRegistries, changedRegistries, offeredNote, rememberTools } from "./offered-tools.ts";
import { hookRuntime, type TaskScope } from "./scope.ts";
import { emit, type Session } from "./session.ts";

/** Call a model and give its answer the id of its place. Hooks of middleware stand inside the effect: a replay runs none. */
export async function callModel(
  session: Session,
  scope: TaskScope,
  key: string,
  call: ModelCall,
): Promise<AssistantMessage> {
  const { task } = scope;
  checkCall(task, call);
  const { model, middleware: own = [] } = call;
  const middleware = session.policies.length === 0 ? own : [...session.policies, ...own];
  const message = await perform<AssistantMessage>(session, {
    task,
    key,
    kind: "model",
    name: model.id,
    effect: "idempotent",
    execute: async () => {
      const runtime = middleware.length === 0 ? undefined : hookRuntime(session, scope);
      const request =
        runtime === undefined
          ? call.request
          : await before(middleware, await selected(middleware, call.request, runtime), runtime);
      emit(session, {
        type: "model.started",
        node: task.node,
        task: task.id,
        model: model.id,
        messages: request.messages.length,
      });
      const shown: Shown = { tools: request.tools, registries: changedRegistries(session) };
      const reply =
        runtime === undefined
          ? checkReply(model, await respond(session, scope, call, request))
          : await asked(around(session, scope, call, middleware, runtime, shown), request, model, middleware, runtime);
      const reviewed = withinBounds(reply);
      const calls = reviewed.content.some(({ type }) => type === "call");
      // A request that names no tools says nothing of them; one whose tools were all taken away does.
      const offered = calls && call.request.tools.length > 0 ? offeredNote(session, shown.tools) : {};
      const answer: AssistantMessage = { ...reviewed, ...offered, role: "assistant", id: `${task.id}:${key}` };
      if (calls) rememberTools(answer, shown.registries);
      return answer;
    },
    settled: (value, reused) => {
      if (!reused) emit(session, { type: "message.completed", node: task.node, task: task.id, message: value });
    },
  });
  scope.beat();
  return deepFreeze(message);
}

/** The reply through all hooks. */
async function asked(
  ask: (request: ModelRequest) => Promise<ModelReply>,
  request: ModelRequest,
  model: Model,
  middleware: readonly Middleware[],
  runtime: MiddlewareRuntime,
): Promise<ModelReply> {
  return after(model, middleware, checkReply(model, await ask(request)), runtime);
}

/** The tools of the request that was sent last, and the registries that had changed by then. */
interface Shown {
  tools: readonly ModelTool[];
  registries: ChangedRegistries;
}

/** The request with the tools that middleware shows in this turn. None can show what another has hidden. */
async function selected(
  middleware: readonly Middleware[],
  request: ModelRequest,
  runtime: MiddlewareRuntime,
): Promise<ModelRequest> {
  if (!middleware.some(({ selectTools }) => selectTools !== undefined)) return request;
  const all = request.tools.map(({ name }) => name);
  let names: readonly string[] = all;
  for (const hooks of middleware) {
    const { selectTools } = hooks;
    if (selectTools === undefined) continue;
    const before = names;
    const chosen: unknown = await hook(hooks, "selectTools", () => selectTools(before, runtime));
    if (chosen === undefined) continue;
    if (!Array.isArray(chosen) || !chosen.every((name) => all.includes(name)))
      throw unfitAnswer(hooks, "selectTools", chosen, `a list of names out of ${JSON.stringify(all)}`);
    names = before.filter((name) => chosen.includes(name));
  }
  return { ...request, tools: request.tools.filter(({ name }) => names.includes(name)) };
}

async function before(
  middleware: readonly Middleware[],
  request: ModelRequest,
  runtime: MiddlewareRuntime,
): Promise<ModelRequest> {
  let current = request;
  for (const hooks of middleware) {
    const { beforeModel } = hooks;
    if (beforeModel === undefined) continue;
    current = (await hook(hooks, "beforeModel", () => beforeModel(current, runtime))) ?? current;
    if (!isPlainObject(current) || !Array.isArray(current.messages) || !Array.isArray(current.tools))
      throw unfitAnswer(hooks, "beforeModel", current, "a request");
  }
  return current;
}

async function after(
  model: Model,
  middleware: readonly Middleware[],
  reply: ModelReply,
  runtime: MiddlewareRuntime,
): Promise<ModelReply> {
  let current = reply;
  for (const hooks of middleware.toReversed()) {
    const { afterModel } = hooks;
    if (afterModel === undefined) continue;
    const before = current;
    current = (await hook(hooks, "afterModel", () => afterModel(before, runtime))) ?? current;
    if (current !== before) checkReply(model, current, hooks);
  }
  return current;
}

/** Call a hook; what it throws names the middleware. An error of ours already says where it comes from. */
async function hook<Value>(middleware: Middleware, name: string, call: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await call();
  } catch (cause) {
    if (isStatewrightError(cause)) throw cause;
    throw new StatewrightError("node_failed", {
      what: `the hook ${name} of the middleware "${middleware.name}" failed: ${describeThrown(cause)}`,
      next: "Mend the middleware, then resume the thread: finished work is kept",
      cause,
    });
  }
}

function unfitAnswer(middleware: Middleware, name: string, answer: unknown, wanted: string): StatewrightError {
  disregardPromises(answer);
  return new StatewrightError("node_failed", {
    what: `the hook ${name} of the middleware "${middleware.name}" returned ${describeValue(answer)}, which is not ${wanted}`,
    next: `Return ${wanted}, or nothing to leave it as it is`,
  });
}

/** A model that cannot be asked, as a program without types may give one. */
function checkCall({ node }: Task, call: unknown): void {
  const model = isPlainObject(call) ? call["model"] : undefined;
  if (isModel(model) && isPlainObject(call) && isPlainObject(call["request"])) return;
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

function replyIssue(reply: unknown): SchemaIssue | undefined {
  if (!isPlainObject(reply)) return { path: "", message: `it is ${describeValue(reply)}` };
  try {
    return messageIssue({ content: reply["content"], finish: reply["finish"], role: "assistant", id: "" });
  } catch (cause) {
    return { path: "", message: `it cannot be read: ${describeThrown(cause)}` };
  }
}

/** A reply that is one, or `model_failed`: the model or a hook around it answered with something else. */
function checkReply(model: Model, reply: ModelReply, middleware?: Middleware): ModelReply {
  const issue = replyIssue(reply);
  if (issue === undefined) return reply;
  disregardPromises(reply);
  const details: ModelFailure = { retryable: false };
  throw new StatewrightError("model_failed", {
    what: `the answer of the model "${model.id}"${middleware === undefined ? "" : `, as the middleware "${middleware.name}" left it,`} is no reply: ${issue.path === "" ? "" : `${issue.path}: `}${issue.message}`,
    next: "Answer with { content: […], finish }; middleware around a model returns what next gives, or a reply of its own",
    details,
  });
}

function around(
  session: Session,
  scope: TaskScope,
  call: ModelCall,
  middleware: readonly Middleware[],
  runtime: MiddlewareRuntime,
  shown: Shown,
): (request: ModelRequest) => Promise<ModelReply> {
  let next = (request: ModelRequest): Promise<ModelReply> => {
    shown.tools = request.tools;
    shown.registries = changedRegistries(session);
    return respond(session, scope, call, request);
  };
  for (const hooks of middleware.toReversed()) {
    const wrap = hooks.aroundModel;
    if (wrap === undefined) continue;
    const inner = next;
    next = (request) => wrapped(hooks, wrap, request, inner, runtime);
  }
  return next;
}

/** A hook around the rest. What the rest threw goes through it as it is; what the hook itself throws names it. */
async function wrapped(
  middleware: Middleware,
  wrap: NonNullable<Middleware["aroundModel"]>,
  request: ModelRequest,
  inner: (request: ModelRequest) => Promise<ModelReply>,
  runtime: MiddlewareRuntime,
): Promise<ModelReply> {
  let inside: { readonly thrown: unknown } | undefined;
  const watched = async (given: ModelRequest): Promise<ModelReply> => {
    try {
      return await inner(given);
    } catch (thrown) {
      inside = { thrown };
      throw thrown;
    }
  };
  try {
    return await wrap(request, watched, runtime);
  } catch (thrown) {
    if (inside !== undefined && Object.is(inside.thrown, thrown)) throw thrown;
    return hook(middleware, "aroundModel", () => Promise.reject(thrown));
  }
}

async function respond(
  session: Session,
  scope: TaskScope,
  call: ModelCall,
  request: ModelRequest,
): Promise<ModelReply> {
  const { node, id: task } = scope.task;
  const watched = scope.node.policy.idleTimeoutMs !== undefined;
  const wire = wireFor(session.plan, call.model, request);
  const reply = await call.model.respond(wire.request, {
    signal: scope.signal(),
    delta:
      watched || session.events.listening()
        ? (delta) => {
            scope.beat();
            if (delta.type === "call")
              emit(session, {
                type: "message.call_delta",
                node,
                task,
                callId: delta.id,
                tool: wire.canonical(delta.name),
                argsText: delta.argsText,
              });
            else emit(session, { type: "message.delta", node, task, kind: delta.type, text: delta.text });
          }
        : undefined,
  });
  return wire.reply(reply);
}
