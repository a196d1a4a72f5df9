/** Frames of the past of a thread: all of them, or, of a long thread, those from its newest checkpoint on. */
import type { SseLine } from "../../http/route.ts";

/** Most frames of the past that a client receives. */
export const maxReplayedFrames = 10_000;

/** Line of the past, and what the buffer must know of it. */
export interface ReplayedLine {
  readonly line: SseLine;
  /** True for a frame of the outermost graph. */
  readonly isRoot: boolean;
  /** True for the frame that shows a run as running. */
  readonly isRunning: boolean;
}

/** Collects the past of a thread in bounded memory. */
export class ReplayBuffer {
  readonly #max: number;
  #all: ReplayedLine[] | undefined = [];
  /** Frames from the newest checkpoint on. */
  #tail: ReplayedLine[] = [];
  #running: ReplayedLine | undefined;

  constructor(max: number = maxReplayedFrames) {
    this.#max = max;
  }

  /** Notes that the next lines belong to a checkpoint of the outermost graph. */
  startCheckpoint(): void {
    this.#tail = [];
  }

  push(line: ReplayedLine): void {
    if (line.isRunning) this.#running = line;
    this.#all?.push(line);
    if (this.#all !== undefined && this.#all.length > this.#max) this.#all = undefined;
    this.#tail.push(line);
    // The work of inner graphs since the checkpoint may be long as well: what the checkpoint holds is enough.
    if (this.#tail.length > this.#max) this.#tail = this.#tail.filter(({ isRoot }) => isRoot).slice(-this.#max);
  }

  /** Returns the lines for the client; `isAtWork` is true while a run goes on. */
  read({ isAtWork }: { readonly isAtWork: boolean }): readonly SseLine[] {
    if (this.#all !== undefined) return this.#all.map(({ line }) => line);
    const running = this.#running;
    const isCut = isAtWork && running !== undefined && !this.#tail.includes(running);
    return [...(isCut ? [running] : []), ...this.#tail].map(({ line }) => line);
  }
}
