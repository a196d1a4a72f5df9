/** What a request knows of its thread. */
import { isStatewrightError, type Message } from "@statewright/core";
import { RequestProblem } from "../http/problem.ts";
import { createProblem } from "../http/problem-table.ts";
import type { CallerService, StateView } from "../service/caller-service.ts";
import { isMessage } from "./list-written-messages.ts";

/** Returns the newest state of the head branch; undefined for a thread without one. Throws 404 for a thread of another graph. */
export async function findState(service: CallerService, thread: string, graph: string): Promise<StateView | undefined> {
  try {
    const state = await service.getState(thread);
    if (state.graph !== graph) throw new RequestProblem(createProblem("unknown_thread"));
    return state;
  } catch (error) {
    if (isStatewrightError(error, "unknown_thread") || isStatewrightError(error, "unknown_checkpoint"))
      return undefined;
    throw error;
  }
}

/** Returns the newest state of the head branch. Throws 404 for a missing thread and for one of another graph. */
export async function requireState(
  service: CallerService,
  thread: string,
  graph: string,
): Promise<StateView | undefined> {
  const state = await findState(service, thread, graph);
  // A thread that was created and has not run has no state; a missing one has no row.
  if (state === undefined) await service.getThread(thread);
  return state;
}

/** Lists the messages of a state. */
export function listStateMessages(state: StateView | undefined): readonly Message[] {
  const messages = state?.values["messages"];
  return Array.isArray(messages) ? (messages as readonly unknown[]).filter(isMessage) : [];
}
