/** Threads in the shape of LangGraph. */
import { isStatewrightError } from "@statewright/core";
import type { CallerService, StateView, ThreadView } from "../service/caller-service.ts";
import { toAssistantId } from "./assistants.ts";
import { groupInterrupts, toWireInterrupt } from "./to-wire-interrupts.ts";
import type { WireObject } from "./to-wire-message.ts";
import { toWireValues } from "./to-wire-values.ts";
import { toWireThreadStatus } from "./wire-status.ts";

/** Reads the newest state of a thread; undefined before its first checkpoint. */
export async function findNewestState(service: CallerService, thread: string): Promise<StateView | undefined> {
  try {
    return await service.getState(thread);
  } catch (error) {
    if (isStatewrightError(error, "unknown_checkpoint")) return undefined;
    throw error;
  }
}

/** Converts a thread, with the values of its newest state. */
export async function toWireThread(
  service: CallerService,
  thread: ThreadView,
  { hitl, withValues = true }: { readonly hitl: boolean; readonly withValues?: boolean | undefined },
): Promise<WireObject> {
  const { id, graph, status, metadata, title, createdAt, updatedAt } = thread;
  const state = withValues ? await findNewestState(service, id) : undefined;
  const known = graph === undefined ? {} : { graph_id: graph, assistant_id: await toAssistantId(graph) };
  return {
    thread_id: id,
    created_at: new Date(createdAt).toISOString(),
    updated_at: new Date(updatedAt).toISOString(),
    metadata: { ...metadata, ...(title === undefined ? {} : { title }), ...known },
    status: toWireThreadStatus(status),
    config: {},
    values: state === undefined ? null : toWireValues(state.values),
    interrupts: state === undefined ? {} : listByTask(state, { hitl }),
  };
}

/** Interrupts of a thread by the task that raised them. */
function listByTask({ interrupts, checkpoint, next }: StateView, options: { readonly hitl: boolean }): WireObject {
  const groups = groupInterrupts(interrupts, options).map(toWireInterrupt);
  return groups.length === 0 ? {} : { [`${checkpoint}:${next.at(-1) ?? ""}`]: groups };
}
