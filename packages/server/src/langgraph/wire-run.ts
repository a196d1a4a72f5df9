/** Runs in the shape of LangGraph. */
import type { RunView } from "../service/caller-service.ts";
import { toAssistantId } from "./assistants.ts";
import { isRecord } from "./is-record.ts";
import { parseStreamModes, type StreamMode } from "./stream-modes.ts";
import type { WireObject } from "./to-wire-message.ts";
import { toWireRunStatus } from "./wire-status.ts";

/** Converts a run. */
export async function toWireRun(run: RunView): Promise<WireObject> {
  const { lg } = run.metadata;
  return {
    run_id: run.id,
    thread_id: run.thread,
    assistant_id: await toAssistantId(run.graph),
    created_at: new Date(run.createdAt).toISOString(),
    updated_at: new Date(run.endedAt ?? run.createdAt).toISOString(),
    status: toWireRunStatus(run.status),
    metadata: { ...(isRecord(lg) ? lg : {}), graph_id: run.graph, attempt: run.attempt },
    multitask_strategy: null,
    kwargs: {},
  };
}

const joinedModes: readonly StreamMode[] = ["values", "updates", "messages-tuple", "custom"];

/** Returns the stream modes of a run's request; for a run of another protocol the modes of most clients. */
export function getStreamSelection({ metadata }: RunView): {
  readonly modes: readonly StreamMode[];
  readonly subgraphs: boolean;
} {
  const { lgStream } = metadata;
  if (!isRecord(lgStream) || !Array.isArray(lgStream["modes"])) return { modes: joinedModes, subgraphs: false };
  return { modes: parseStreamModes(lgStream["modes"].map(String)), subgraphs: lgStream["subgraphs"] === true };
}
