/**
 * Relay: carries the transient events of runs at work to readers of the thread in this process and in others. Nothing
 * of it is durable. A reader that missed a frame asks for the snapshot, and a reader without a relay receives the text
 * with its commit.
 */
import type { OpenWork } from "./open-message.ts";
import type { RunEvent } from "./run-event.ts";

/** Frame of a thread: a transient event, or the news that durable events up to a number are in the store. */
export interface RelayFrame {
  /** Id of the publisher, which is one run at work under a single claim. */
  readonly source: string;
  /** Run of the publisher. */
  readonly run: string;
  /** Branch of the run. */
  readonly branch: string;
  /** Epoch of the publisher's claim. Frames below the newest epoch come from an owner that has lost the thread. */
  readonly epoch: number;
  /** Number of the frame, from 1 without gaps per source. */
  readonly index: number;
  /** Sequence number of the newest durable event before this frame. */
  readonly seq: number;
  /** Transient event. */
  readonly event?: RunEvent;
  /**
   * Namespace whose superstep was committed, as `withinId` of its events, `""` for the outermost graph. Its open
   * messages and calls are durable now.
   */
  readonly committed?: string;
  /** Last frame of the source: its run is no longer at work. */
  readonly ended?: true;
}

/** State of a publisher after one of its frames: what is open in the run at work. */
export interface RelaySnapshot extends Pick<RelayFrame, "source" | "run" | "branch" | "epoch" | "index" | "seq"> {
  readonly open: OpenWork;
}

/** Report that frames of the thread may be missing. The reader asks for the snapshot. */
export interface RelayGap {
  readonly missing: true;
}

/**
 * Carries frames from runs at work to readers. `memoryRelay` serves a single process; `socketRelay` of the SQLite store
 * serves the processes of a host. Contract: no function throws or rejects because of another process, and no frame
 * is stored.
 */
export interface Relay {
  /** Sends frames of a thread, in order. Not async: the run never waits for a reader. */
  publish(thread: string, frames: readonly RelayFrame[]): void;
  /**
   * Calls `listener` with each frame of the thread from now on, in order per source, until the returned function is
   * called. A gap is reported, and a reader also finds it by the index of the next frame.
   */
  subscribe(thread: string, listener: (received: RelayFrame | RelayGap) => void): () => void;
  /**
   * Resolves to what is open in the run at work: of the publisher with the highest epoch. Undefined when no reachable
   * process publishes the thread.
   */
  snapshot(thread: string): Promise<RelaySnapshot | undefined>;
  /**
   * Returns false while the relay has never had a reader: runs then publish nothing, and their models need not stream.
   * Absent: runs always publish.
   */
  isInUse?(): boolean;
  /** Makes this process reachable for readers before its first run. Called when an engine starts. */
  prepare?(): void;
}
