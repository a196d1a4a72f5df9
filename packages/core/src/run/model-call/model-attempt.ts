/** One request to a model: within its limits of time, its parts told as they come, its reply known to be one. */

import { describeThrown, StatewrightError } from "../../base/errors.ts";
import { disregardPromises } from "../../base/ignore-rejections.ts";
import { describeValue, isPlainObject } from "../../base/json.ts";
import type { SchemaIssue } from "../../base/schema.ts";
import type { ModelTimeouts } from "../../model/call-policy.ts";
import { messageIssue } from "../../model/message.ts";
import type { Model, ModelCallOptions, ModelFailure, ModelReply, ModelRequest } from "../../model/model.ts";
import { untilAborted } from "../session/abort.ts";
import { type IdleWatch, watchIdle } from "../session/idle-watch.ts";
import type { TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import type { MessageStream } from "./message-stream.ts";
import { modelWarnings } from "./model-warnings.ts";
import { wireFor } from "./model-wire.ts";

/** The limits of one request; `leftMs` is what is left of `totalMs`. */
export type AttemptLimits = ModelTimeouts & { readonly leftMs?: number | undefined };

/** Make one request. Rejects with what the model threw, with `model_failed` when a limit is over, or with the signal's reason. */
export async function attemptModel(
  session: Session,
  scope: TaskScope,
  model: Model,
  request: ModelRequest,
  stream: MessageStream,
  limits: AttemptLimits | undefined,
): Promise<ModelReply> {
  const wire = wireFor(session.plan, model, request);
  const tell: Tell = (delta) => stream.tell(delta, wire.canonical);
  if (limits !== undefined) {
    const reply = await limited(session, scope, model, wire.request, tell, limits);
    return checkReply(model, wire.reply(reply));
  }
  const watched = scope.node.policy.idleTimeoutMs !== undefined;
  let isOver = false;
  let reply: ModelReply;
  try {
    reply = await model.respond(wire.request, {
      ...(watched && { alive: scope.beat }),
      signal: scope.signal(),
      warn: modelWarnings(session, scope, model),
      delta:
        watched || session.events.listening()
          ? (delta) => {
              // Who speaks after the end of a request speaks of no message.
              if (isOver || scope.ended()) return;
              scope.beat();
              tell(delta);
            }
          : undefined,
    });
  } finally {
    isOver = true;
  }
  return checkReply(model, wire.reply(reply));
}

type Tell = NonNullable<ModelCallOptions["delta"]>;

/** The request with a signal of its own: a limit that is over rejects at once, whatever the model does with its signal. */
function limited(
  session: Session,
  scope: TaskScope,
  model: Model,
  request: ModelRequest,
  tell: Tell,
  { firstTokenMs, idleMs, totalMs, leftMs }: AttemptLimits,
): Promise<ModelReply> {
  const { world } = session;
  const outer = scope.signal();
  const controller = new AbortController();
  return new Promise((resolve, reject) => {
    let isOver = false;
    let idle: IdleWatch | undefined;
    let stopFirst: (() => void) | undefined;
    const stops: (() => void)[] = [];
    const end = (): boolean => {
      if (isOver) return false;
      isOver = true;
      stopFirst?.();
      idle?.stop();
      for (const stop of stops) stop();
      return true;
    };
    const giveUp = (reason: unknown): void => {
      if (!end()) return;
      reject(reason);
      controller.abort(reason);
    };
    const came = (): void => {
      scope.beat();
      stopFirst?.();
      stopFirst = undefined;
      if (idle !== undefined) idle.beat();
      else if (idleMs !== undefined)
        idle = watchIdle(world, idleMs, () => giveUp(tooLate(model, "idleMs", idleMs, "was silent for", true)));
    };

    if (outer.aborted) {
      giveUp(outer.reason);
      return;
    }
    stops.push(untilAborted(outer, () => giveUp(outer.reason)));
    if (firstTokenMs !== undefined)
      stopFirst = world.schedule.after(firstTokenMs, () =>
        giveUp(tooLate(model, "firstTokenMs", firstTokenMs, "gave no first token for", true)),
      );
    if (leftMs !== undefined && totalMs !== undefined)
      stops.push(
        world.schedule.after(leftMs, () =>
          giveUp(tooLate(model, "totalMs", totalMs, "was not done, with all its attempts, after", false)),
        ),
      );
    const asked = Promise.resolve().then(() =>
      model.respond(request, {
        signal: controller.signal,
        warn: modelWarnings(session, scope, model),
        delta: (delta) => {
          if (isOver) return;
          came();
          tell(delta);
        },
        alive: (sign) => {
          if (isOver) return;
          if (sign === "part") came();
          else {
            scope.beat();
            idle?.beat();
          }
        },
      }),
    );
    asked.then(
      (reply) => {
        if (end()) resolve(reply);
      },
      (error: unknown) => {
        if (end()) reject(error);
      },
    );
  });
}

/** What the details of a limit that is over hold. */
interface TooLate extends ModelFailure {
  readonly limit: keyof ModelTimeouts;
}

function tooLate(
  model: Model,
  limit: keyof ModelTimeouts,
  ms: number,
  said: string,
  retryable: boolean,
): StatewrightError {
  const details: TooLate = { retryable, kind: "timeout", limit };
  return new StatewrightError("model_failed", {
    what: `the model "${model.id}" ${said} ${ms} ms`,
    next: `Give it more ${limit}, a retry, or a fallback`,
    details,
  });
}

/** A reply that is one, or `model_failed`: the model, or the `by` around it, answered with something else. */
export function checkReply(model: Model, reply: ModelReply, by?: { readonly name: string }): ModelReply {
  const issue = replyIssue(reply);
  if (issue === undefined) return reply;
  disregardPromises(reply);
  const details: ModelFailure = { retryable: false, kind: "broken_reply" };
  throw new StatewrightError("model_failed", {
    what: `the answer of the model "${model.id}"${by === undefined ? "" : `, as the middleware "${by.name}" left it,`} is no reply: ${issue.path === "" ? "" : `${issue.path}: `}${issue.message}`,
    next: "Answer with { content: […], finish }; middleware around a model returns what next gives, or a reply of its own",
    details,
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
