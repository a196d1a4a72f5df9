/** Runs of a branch as its durable events tell them: where each has started, and which messages of users it began with. */
import type { CallerService } from "../service/caller-service.ts";
import { listWrittenMessages } from "./list-written-messages.ts";
import { readFrames } from "./read-frames.ts";

/** Run of a branch or of one of its ancestors. */
export interface BranchRun {
  readonly run: string;
  /** Checkpoint from which the run works: that of its input, else the newest before it; undefined without one. */
  readonly start: number | undefined;
  /** Checkpoints by the ids of the messages of users that they have written. */
  readonly userMessages: ReadonlyMap<string, number>;
  /** False for a run that the branch has only the input of: the branch begins there. */
  readonly hasAnswer: boolean;
}

interface Draft extends BranchRun {
  start: number | undefined;
  readonly userMessages: Map<string, number>;
  hasAnswer: boolean;
}

/** Lists the runs of a branch, oldest first. */
export async function listBranchRuns(
  service: CallerService,
  place: { readonly thread: string; readonly branch: string | undefined; readonly signal: AbortSignal },
): Promise<readonly BranchRun[]> {
  const runs: Draft[] = [];
  let checkpoint: number | undefined;
  for await (const frame of readFrames(service, {
    ...place,
    after: 0,
    end: "idle",
    channels: [],
    isStoredOnly: true,
  })) {
    const current = runs.at(-1);
    switch (frame.type) {
      case "run.started":
        if (frame.run === current?.run) break;
        runs.push({ run: frame.run, start: checkpoint, userMessages: new Map(), hasAnswer: false });
        break;
      case "run.waiting":
      case "run.completed":
      case "run.failed":
      case "run.paused":
        if (current !== undefined) current.hasAnswer = true;
        break;
      case "step.committed": {
        if (frame.within !== undefined || frame.checkpoint === undefined) break;
        checkpoint = frame.checkpoint;
        if (current?.run !== frame.run) break;
        if (frame.source === "input") current.start = checkpoint;
        if (frame.source === "step") current.hasAnswer = true;
        for (const { id, role } of listWrittenMessages(frame.changes))
          if (role === "user" && !current.userMessages.has(id)) current.userMessages.set(id, checkpoint);
      }
    }
  }
  return runs;
}
