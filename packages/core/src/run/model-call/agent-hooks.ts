/** The hooks at the two ends of an agent's run: each pass is a recorded effect of its own, so that a replay runs none again. */
import { deepFreeze, isPlainObject } from "../../base/json.ts";
import type { AgentEnds } from "../../define/node.ts";
import type { AgentEnd, AssistantMessage, Message } from "../../model/message.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { afterCalls } from "../conversation/pending-calls.ts";
import { perform } from "../journal/journal.ts";
import { takeHookChanges } from "../journal/long-term-writes.ts";
import { lateWrites, placeForWrites, readHookWrites, stateAsWritten } from "../session/hook-writes.ts";
import type { Write } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import { emit, type Session } from "../session/session.ts";
import { isSpokenTo } from "../superstep/drain-inbox.ts";
import { callHook } from "./call-hook.ts";
import { endingMessage, endOf, type HooksAtWork, hooksAtWork, keepChanges, runtimeFor } from "./hook-runtime.ts";
import { unfitAnswer } from "./model-hooks.ts";

/** Whether an effect of a tool node is no call: hooks at the end of the agent have done it, or asked a model for it. */
export function isOfEnd(key: string): boolean {
  return `${key}:`.startsWith(`${afterCalls}:afterAgent:`);
}

/** What the hooks before an agent came to, as it is recorded. */
interface Beginning {
  readonly writes?: readonly Write[];
  /** They have ended the agent with this. */
  readonly answer?: AssistantMessage;
}

/** What the hooks after an agent came to, as it is recorded. */
interface Ended {
  readonly writes?: readonly Write[];
}

/**
 * Call `beforeAgent` of all middleware, first to last, when the run of the agent begins. Gives the answer of a hook that has
 * ended it.
 */
export async function beginAgent(
  session: Session,
  scope: TaskScope,
  key: string,
  middleware: readonly Middleware[],
): Promise<AssistantMessage | undefined> {
  const { task } = scope;
  if (session.control.begun?.includes(task.node) === true) return undefined;
  if (!middleware.some(({ beforeAgent }) => beforeAgent !== undefined)) return undefined;
  const effect = `${key}:beforeAgent`;
  const place = placeForWrites(scope);
  const { writes, answer } = await perform<Beginning>(session, {
    task,
    key: effect,
    kind: "step",
    name: "beforeAgent",
    effect: "idempotent",
    execute: async () => {
      const at = hooksAtWork(session, scope, effect, "before", middleware);
      await eachBefore(at, middleware);
      keepChanges(at);
      const ends = at.ending === undefined ? {} : { answer: endingMessage(at.ending, `${task.id}:${key}`) };
      return { ...(at.writes.length === 0 ? {} : { writes: at.writes }), ...ends };
    },
    settled: ({ answer: message }, reused) => {
      if (message !== undefined && !reused)
        emit(session, { type: "message.completed", node: task.node, task: task.id, message });
    },
  });
  if (writes !== undefined) place.push(...deepFreeze(writes));
  takeHookChanges(session, scope, effect);
  session.begun = [...new Set([...(session.begun ?? session.control.begun ?? []), task.node])];
  return answer;
}

async function eachBefore(at: HooksAtWork, middleware: readonly Middleware[]): Promise<void> {
  for (const hooks of middleware) {
    const { beforeAgent } = hooks;
    if (beforeAgent === undefined) continue;
    await callHook(hooks, "beforeAgent", () => beforeAgent(runtimeFor(at, hooks)));
    if (at.ending !== undefined) return;
  }
}

/**
 * Call `afterAgent` of all middleware, last to first, where the agent would end with what its task writes: `said`. A message
 * that waits for the run keeps it from ending. An end that a hook or a limit has made is final: hooks look at it, and write.
 */
export async function endAgent(
  session: Session,
  scope: TaskScope,
  key: string,
  middleware: readonly Middleware[],
  says: () => readonly Write[],
  ends: AgentEnds,
): Promise<void> {
  if (!middleware.some(({ afterAgent }) => afterAgent !== undefined)) return;
  const said = says();
  const state = stateAsWritten(session, scope, said);
  const messages = state["messages"] as readonly Message[];
  const made = endOf(messages);
  const ended = made ?? (await ends(state as never));
  if (ended === undefined || scope.signal().aborted || (await isSpokenTo(session, state))) return;
  const { writes } = await perform<Ended>(session, {
    task: scope.task,
    key: `${key}:afterAgent`,
    kind: "step",
    name: "afterAgent",
    effect: "idempotent",
    execute: async () => {
      const phase = made === undefined ? "ended" : "final";
      const at = hooksAtWork(session, scope, `${key}:afterAgent`, phase, middleware, said);
      await eachAfter(at, middleware, messages, ended);
      keepChanges(at);
      return at.writes.length === 0 ? {} : { writes: at.writes };
    },
  });
  if (writes !== undefined) lateWrites(scope).push(...deepFreeze(writes));
  takeHookChanges(session, scope, `${key}:afterAgent`);
}

async function eachAfter(
  at: HooksAtWork,
  middleware: readonly Middleware[],
  messages: readonly Message[],
  ended: AgentEnd,
): Promise<void> {
  const shown = (): Promise<readonly Message[]> => shownMessages(at, middleware, messages);
  for (const hooks of middleware.toReversed()) {
    const { afterAgent } = hooks;
    if (afterAgent === undefined) continue;
    const told: unknown = await callHook(hooks, "afterAgent", () =>
      afterAgent({ messages, ended, shown }, runtimeFor(at, hooks)),
    );
    if (told === undefined) continue;
    if (!isPlainObject(told) || !Array.isArray(told["messages"]) || Object.keys(told).length > 1)
      throw unfitAnswer(hooks, "afterAgent", told, "{ messages: […] }");
    if (told["messages"].length === 0) continue;
    if (at.phase === "final") {
      const { graph } = at.session.run;
      const what = `the hook afterAgent of the middleware "${hooks.name}" wanted to go on after an end by "${ended.by}", which is final`;
      at.session.world.log("warn", what, { graph, node: at.scope.task.node });
      continue;
    }
    at.writes.push(...readHookWrites(at.session, at.scope, hooks, { messages: told["messages"] }));
    return;
  }
}

/** A conversation as `showMessages` of all middleware leaves it, first to last. */
async function shownMessages(
  at: HooksAtWork,
  middleware: readonly Middleware[],
  messages: readonly Message[],
): Promise<readonly Message[]> {
  let shown = messages;
  for (const hooks of middleware) {
    const { showMessages } = hooks;
    if (showMessages === undefined) continue;
    const before = shown;
    shown = await callHook(hooks, "showMessages", () => showMessages(before, runtimeFor(at, hooks)));
    if (!Array.isArray(shown)) throw unfitAnswer(hooks, "showMessages", shown, "a list of messages");
  }
  return shown;
}
