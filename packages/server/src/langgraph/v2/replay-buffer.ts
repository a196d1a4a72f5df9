/** Frames of the past of a thread: all of them, or, of a long thread, those from its newest checkpoint on. */
import type { SseLine } from "../../http/route.ts";

/** Limits of the past that a client receives. */
export interface ReplayLimits {
  readonly frames: number;
  /** Each checkpoint is replayed with its whole state: the size grows with the square of the length of the thread. */
  readonly bytes: number;
}

const defaultLimits: ReplayLimits = { frames: 10_000, bytes: 32 * 2 ** 20 };

/** Line of the past, and what the buffer must know of it. */
export interface ReplayedLine {
  readonly line: SseLine;
  /** True for a frame of the outermost graph. */
  readonly isRoot: boolean;
  /** True for the frame that shows a run as running. */
  readonly isRunning: boolean;
  /** Approximate size of the state that the line holds; 0 for other lines. */
  readonly bytes: number;
}

/** Collects the past of a thread in bounded memory. */
export class ReplayBuffer {
  readonly #limits: ReplayLimits;
  #bytes = 0;
  #all: ReplayedLine[] | undefined = [];
  /** Frames from the newest checkpoint on. */
  #tail: ReplayedLine[] = [];
  #running: ReplayedLine | undefined;

  constructor(limits: Partial<ReplayLimits> = {}) {
    this.#limits = { ...defaultLimits, ...limits };
  }

  /** Notes that the next lines belong to a checkpoint of the outermost graph. */
  startCheckpoint(): void {
    this.#tail = [];
  }

  push(line: ReplayedLine): void {
    if (line.isRunning) this.#running = line;
    const { frames, bytes } = this.#limits;
    this.#bytes += line.bytes;
    this.#all?.push(line);
    if (this.#all !== undefined && (this.#all.length > frames || this.#bytes > bytes)) this.#all = undefined;
    this.#tail.push(line);
    // The work of inner graphs since the checkpoint may be long as well: what the checkpoint holds is enough.
    if (this.#tail.length > frames) this.#tail = this.#tail.filter(({ isRoot }) => isRoot).slice(-frames);
  }

  /** Returns the lines for the client; `isAtWork` is true while a run goes on. */
  read({ isAtWork }: { readonly isAtWork: boolean }): readonly SseLine[] {
    if (this.#all !== undefined) return this.#all.map(({ line }) => line);
    const running = this.#running;
    const isCut = isAtWork && running !== undefined && !this.#tail.includes(running);
    return [...(isCut ? [running] : []), ...this.#tail].map(({ line }) => line);
  }
}
