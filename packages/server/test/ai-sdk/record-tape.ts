/** Records the frames of runs for tests of mappers: events as a reader in the process gets them, and answers. */
import type { Message, RunEvent, RunHandle } from "@statewright/core";
import type { ClosedInterrupt } from "@statewright/core/inspect";
import { RunMapper, type RunMapperOptions, type UiFrame } from "../../src/ai-sdk/run-mapper.ts";
import type { UiChunk } from "../../src/ai-sdk/ui-chunk.ts";

/** Frames of a thread, in order. */
export class Tape {
  readonly frames: UiFrame[] = [];

  /** Records a run until it rests; returns its interrupts. */
  async record(handle: Pick<RunHandle<unknown>, "on" | "result">): Promise<readonly string[]> {
    const off = handle.on((event) => this.frames.push(event));
    await handle.result.catch((error: unknown) => {
      if (!(error instanceof Error)) throw error;
    });
    off();
    const last = this.frames.findLast(
      (frame): frame is RunEvent & { type: "run.waiting" } => frame.type === "run.waiting",
    );
    return last?.interrupts.map(({ id }) => id) ?? [];
  }

  /** Records the answers with which a waiting run goes on. */
  answer(interrupts: readonly ClosedInterrupt[]): void {
    this.frames.push({ type: "ui.answered", run: this.run, interrupts });
  }

  /** Id of the newest run. */
  get run(): string {
    const started = this.frames.findLast((frame) => frame.type === "run.started");
    if (started?.type !== "run.started") throw new Error("no run has started");
    return started.run;
  }

  /** Only the frames that a store keeps. */
  get storedFrames(): readonly UiFrame[] {
    return this.frames.filter(({ type }) => /^(ui\.|run\.(?!queued)|step\.)/.test(type));
  }
}

/** Maps frames to chunks. */
export function mapFrames(
  frames: readonly UiFrame[],
  options: Partial<RunMapperOptions> & { readonly run: string },
): { readonly chunks: readonly UiChunk[]; readonly mapper: RunMapper } {
  const mapper = new RunMapper({ thread: "t1", branch: "main", ...options });
  return { chunks: frames.flatMap((frame) => mapper.map(frame)), mapper };
}

/** Text of the last message of a model. */
export function getLastText(messages: readonly Message[]): string {
  const last = messages.findLast(({ role }) => role === "assistant");
  return last?.role === "assistant"
    ? last.content.map((block) => (block.type === "text" ? block.text : "")).join("")
    : "";
}
