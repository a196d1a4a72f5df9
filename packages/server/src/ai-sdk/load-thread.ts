/** What a request knows of its thread. */
import { isStatewrightError, type Message } from "@statewright/core";
import { RequestProblem } from "../http/problem.ts";
import { createProblem } from "../http/problem-table.ts";
import type { CallerService, StateView } from "../service/caller-service.ts";
import { isMessage } from "./list-written-messages.ts";

/**
 * Returns the newest state of the head branch; undefined for a thread without one, which may not exist yet: a page opens
 * a chat before its first message. Throws 404 for an unknown graph, and for a thread of another graph.
 */
export async function findState(
  service: CallerService,
  { thread, graph }: { readonly thread: string; readonly graph: string },
): Promise<StateView | undefined> {
  await service.getGraph(graph);
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

/** Lists the messages of a state. */
export function listStateMessages(state: StateView | undefined): readonly Message[] {
  const messages = state?.values["messages"];
  return Array.isArray(messages) ? (messages as readonly unknown[]).filter(isMessage) : [];
}
