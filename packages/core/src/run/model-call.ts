/** A model call: a recorded effect whose answer streams on the run's events. After a crash a finished call is not made again. */
import { deepFreeze } from "../base/json.ts";
import type { ModelCall } from "../define/node.ts";
import type { AssistantMessage } from "../model/message.ts";
import type { ModelReply, ModelRequest } from "../model/model.ts";
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
      const reply = await around(session, scope, call, middleware, runtime)(request);
      const reviewed = await after(middleware, reply, runtime);
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
  for (const hooks of middleware) current = (await hooks.beforeModel?.(current, runtime)) ?? current;
  return current;
}

async function after(
  middleware: readonly Middleware[],
  reply: ModelReply,
  runtime: MiddlewareRuntime,
): Promise<ModelReply> {
  let current = reply;
  for (const hooks of middleware.toReversed()) current = (await hooks.afterModel?.(current, runtime)) ?? current;
  return current;
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
    next = (request) => wrap(request, inner, runtime);
  }
  return next;
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
