/**
 * Runs `beforeAgent` and `afterAgent` hooks. Each pass is a recorded effect, so that a replay does not call hooks
 * again.
 */
import { deepFreeze, isPlainObject } from "../../base/json.ts";
import type { AgentEndCheck } from "../../define/agent-turn.ts";
import type { AgentEnd, AssistantMessage, Message } from "../../model/message.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { emit } from "../events/events.ts";
import { runRecordedEffect } from "../journal/journal.ts";
import { collectHookChanges } from "../journal/long-term-writes.ts";
import { createMessageId } from "../session/parts/position.ts";
import type { Write } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import { hasDeliverableMessage } from "../superstep/drain-inbox.ts";
import { callHook } from "./call-hook.ts";
import type { HookPass } from "./hook-pass.ts";
import {
  createEndingMessage,
  createHookPass,
  createModelHookRuntime,
  getAgentEnd,
  recordLongTermChanges,
} from "./hook-runtime.ts";
import { addWriteList, applyHookWrites, getLateWrites, readHookWrites } from "./hook-writes.ts";
import { createHookResultError } from "./model-hooks.ts";

/** Recorded outcome of the `beforeAgent` hooks. */
interface BeforeAgentOutcome {
  readonly writes?: readonly Write[];
  /** Final answer of a hook that ended the agent. */
  readonly answer?: AssistantMessage;
}

/** Recorded outcome of the `afterAgent` hooks. */
interface AfterAgentOutcome {
  readonly writes?: readonly Write[];
}

/**
 * Calls `beforeAgent` of all middleware, first to last, when an agent starts. Returns the answer of a hook that ended
 * the agent, otherwise undefined.
 */
export async function runBeforeAgentHooks(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal" | "signals">,
  scope: TaskScope,
  key: string,
  middleware: readonly Middleware[],
): Promise<AssistantMessage | undefined> {
  const { task } = scope;
  if (session.progress.control.startedAgents?.includes(task.node) === true) return undefined;
  if (!middleware.some(({ beforeAgent }) => beforeAgent !== undefined)) return undefined;
  const effect = `${key}:beforeAgent`;
  const hookWrites = addWriteList(scope);
  const { writes, answer } = await runRecordedEffect<BeforeAgentOutcome>(session, {
    task,
    key: effect,
    kind: "step",
    name: "beforeAgent",
    effect: "idempotent",
    execute: async () => {
      const hookContext = createHookPass(session, scope, effect, { phase: "before", middleware });
      await callBeforeAgentHooks(hookContext, middleware);
      recordLongTermChanges(hookContext);
      const answerPart =
        hookContext.ending === undefined
          ? {}
          : { answer: createEndingMessage(hookContext.ending, createMessageId(session.position, task, key)) };
      return { ...(hookContext.writes.length === 0 ? {} : { writes: hookContext.writes }), ...answerPart };
    },
    onCommitted: ({ answer: message }, reused) => {
      if (message !== undefined && !reused)
        emit(session.events, { type: "message.completed", node: task.node, task: task.id, message });
    },
  });
  if (writes !== undefined) hookWrites.push(...deepFreeze(writes));
  collectHookChanges(session.position, session.journal, scope, effect);
  session.progress.startedAgents = [
    ...new Set([...(session.progress.startedAgents ?? session.progress.control.startedAgents ?? []), task.node]),
  ];
  return answer;
}

async function callBeforeAgentHooks(hookContext: HookPass, middleware: readonly Middleware[]): Promise<void> {
  for (const hooks of middleware) {
    const { beforeAgent } = hooks;
    if (beforeAgent === undefined) continue;
    await callHook(hooks, "beforeAgent", () => beforeAgent(createModelHookRuntime(hookContext, hooks)));
    if (hookContext.ending !== undefined) return;
  }
}

/** Options of `runAfterAgentHooks`. */
interface RunAfterAgentHooksOptions {
  readonly middleware: readonly Middleware[];
  readonly getTaskWrites: () => readonly Write[];
  readonly findAgentEnd: AgentEndCheck;
}

/**
 * Calls `afterAgent` of all middleware, last to first, when the writes of the task would end the agent. A queued
 * inbox message prevents the end of the agent. An end made by a hook or a limit is final: hooks may read state and
 * write, but cannot continue the agent.
 */
export async function runAfterAgentHooks(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal" | "signals" | "inboxes">,
  scope: TaskScope,
  key: string,
  { middleware, getTaskWrites, findAgentEnd }: RunAfterAgentHooksOptions,
): Promise<void> {
  if (!middleware.some(({ afterAgent }) => afterAgent !== undefined)) return;
  const taskWrites = getTaskWrites();
  const state = applyHookWrites(session.position, session.progress, scope, taskWrites);
  const messages = state["messages"] as readonly Message[];
  const finalEnd = getAgentEnd(messages);
  const agentEnd = finalEnd ?? (await findAgentEnd(state as never));
  if (agentEnd === undefined || scope.getSignal().aborted || (await hasDeliverableMessage(session, state))) return;
  const { writes } = await runRecordedEffect<AfterAgentOutcome>(session, {
    task: scope.task,
    key: `${key}:afterAgent`,
    kind: "step",
    name: "afterAgent",
    effect: "idempotent",
    execute: async () => {
      const phase = finalEnd === undefined ? "ended" : "final";
      const hookContext = createHookPass(session, scope, `${key}:afterAgent`, { phase, middleware, taskWrites });
      await callAfterAgentHooks(hookContext, middleware, messages, agentEnd);
      recordLongTermChanges(hookContext);
      return hookContext.writes.length === 0 ? {} : { writes: hookContext.writes };
    },
  });
  if (writes !== undefined) getLateWrites(scope).push(...deepFreeze(writes));
  collectHookChanges(session.position, session.journal, scope, `${key}:afterAgent`);
}

async function callAfterAgentHooks(
  hookContext: HookPass,
  middleware: readonly Middleware[],
  messages: readonly Message[],
  ended: AgentEnd,
): Promise<void> {
  const getShownMessages = (): Promise<readonly Message[]> => applyShowMessages(hookContext, middleware, messages);
  for (const hooks of middleware.toReversed()) {
    const { afterAgent } = hooks;
    if (afterAgent === undefined) continue;
    const returned: unknown = await callHook(hooks, "afterAgent", () =>
      afterAgent({ messages, ended, getShownMessages }, createModelHookRuntime(hookContext, hooks)),
    );
    if (returned === undefined) continue;
    if (!isPlainObject(returned) || !Array.isArray(returned["messages"]) || Object.keys(returned).length > 1)
      throw createHookResultError(hooks, "afterAgent", returned, "{ messages: […] }");
    if (returned["messages"].length === 0) continue;
    if (hookContext.phase === "final") {
      const { graph } = hookContext.position.run;
      const warning = `afterAgent of middleware "${hooks.name}" returned messages, but the end by "${ended.by}" is final: the messages were ignored`;
      hookContext.env.world.log("warn", warning, { graph, node: hookContext.scope.task.node });
      continue;
    }
    hookContext.writes.push(
      ...readHookWrites(hookContext.position, hookContext.scope, hooks, {
        codec: hookContext.env.codec,
        update: {
          messages: returned["messages"],
        },
      }),
    );
    return;
  }
}

/** Applies `showMessages` of all middleware to a conversation, first to last. */
async function applyShowMessages(
  hookContext: HookPass,
  middleware: readonly Middleware[],
  messages: readonly Message[],
): Promise<readonly Message[]> {
  let shown = messages;
  for (const hooks of middleware) {
    const { showMessages } = hooks;
    if (showMessages === undefined) continue;
    const previous = shown;
    shown = await callHook(hooks, "showMessages", () =>
      showMessages(previous, createModelHookRuntime(hookContext, hooks)),
    );
    if (!Array.isArray(shown)) throw createHookResultError(hooks, "showMessages", shown, "a list of messages");
  }
  return shown;
}
