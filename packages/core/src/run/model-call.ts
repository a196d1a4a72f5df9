/** A model call: a recorded effect whose answer streams on the run's events. After a crash a finished call is not made again. */
import { disregardPromises } from "../base/disregard.ts";
import { describeThrown, isStatewrightError, StatewrightError } from "../base/errors.ts";
import { deepFreeze, describeValue, isPlainObject } from "../base/json.ts";
import type { SchemaIssue } from "../base/schema.ts";
import type { Task } from "../checkpoint/checkpoint.ts";
import type { ModelCall } from "../define/node.ts";
import { type AssistantMessage, messageIssue } from "../model/message.ts";
import { isModel, type Model, type ModelFailure, type ModelReply, type ModelRequest } from "../model/model.ts";
import type { Middleware, MiddlewareRuntime } from "../tool/middleware.ts";
import { perform } from "./journal.ts";
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
  const { model, middleware = [] } = call;
  const message = await perform<AssistantMessage>(session, {
    task,
    key,
    kind: "model",
    name: model.id,
    effect: "idempotent",
    execute: async () => {
      const runtime = hookRuntime(session, scope);
      const request = await before(middleware, call.request, runtime);
      emit(session, {
        type: "model.started",
        node: task.node,
        task: task.id,
        model: model.id,
        messages: request.messages.length,
      });
      const reply = checkReply(model, await around(session, scope, call, middleware, runtime)(request));
      const reviewed = await after(model, middleware, reply, runtime);
      return { ...reviewed, role: "assistant", id: `${task.id}:${key}` };
    },
    settled: (value, reused) => {
      if (!reused) emit(session, { type: "message.completed", node: task.node, task: task.id, message: value });
    },
  });
  scope.beat();
  return deepFreeze(message);
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
): (request: ModelRequest) => Promise<ModelReply> {
  let next = (request: ModelRequest): Promise<ModelReply> => respond(session, scope, call, request);
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

function respond(session: Session, scope: TaskScope, call: ModelCall, request: ModelRequest): Promise<ModelReply> {
  const { node, id: task } = scope.task;
  const watched = scope.node.policy.idleTimeoutMs !== undefined;
  return call.model.respond(request, {
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
                tool: delta.name,
                argsText: delta.argsText,
              });
            else emit(session, { type: "message.delta", node, task, kind: delta.type, text: delta.text });
          }
        : undefined,
  });
}
