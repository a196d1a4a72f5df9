/** A thread as the store in memory keeps it. */

import type { MemoryLongTerm } from "../../long-term/memory-long-term.ts";
import type { RunRow } from "../checkpoint.ts";
import type { EventRow } from "../event.ts";
import type { CutImage, WrittenBy } from "../export/thread-export.ts";
import type { LetterRow } from "../inbox-message.ts";
import type { EffectRow, InterruptRow } from "../journal.ts";
import type { CheckpointWithDeltas } from "../store.ts";
import type { TimerRow } from "../timer.ts";
import { type ArtifactsOfThread, noArtifacts } from "./memory-artifacts.ts";

export interface Owner {
  alive: boolean;
}

export interface Saved {
  readonly checkpoint: CheckpointWithDeltas;
  readonly writtenBy: WrittenBy;
  readonly line: Line;
}

export interface Line {
  readonly name: string;
  readonly from: number | undefined;
  /** The line that `from` is on. */
  readonly origin: Line | undefined;
  readonly checkpoints: Saved[];
  /** Where retention took checkpoints away. */
  readonly cuts: CutImage[];
  /** The journal by step, so that a fold looks at its own step only. */
  readonly effects: Map<number, Map<string, EffectRow>>;
  readonly interrupts: Map<string, SavedQuestion>;
  /** Those that its run waits for, if it waits. */
  readonly awaited: Set<string>;
  readonly timers: Map<string, TimerRow>;
  /** Its inbox in the order of posting, with what a run has taken in that may yet be taken back. */
  letters: readonly LetterRow[];
  run: string | undefined;
}

export interface Thread {
  readonly id: string;
  readonly createdAt: number;
  headBranch: string;
  readonly lines: Map<string, Line>;
  /** The checkpoints of all lines, by id. */
  readonly checkpoints: Map<number, Saved>;
  readonly runs: Map<string, SavedRun>;
  /** Durable events that no checkpoint tells, by number. */
  readonly facts: EventRow[];
  readonly artifacts: ArtifactsOfThread;
  /** How many of them are queued. */
  queued: number;
  owner: Owner | undefined;
  /** What the owner runs: checkpoints are written by it. */
  writer: WrittenBy;
  writtenBy: WrittenBy;
  epoch: number;
  seq: number;
  checkpoint: number;
  run: string | undefined;
  updatedAt: number;
}

export interface SavedRun {
  readonly row: RunRow;
  /** Its number among all runs of all threads: a clock that was set back does not change their order. */
  readonly nth: number;
  /** The epoch under which it was written last: what runs under another one is at work no more. */
  readonly epoch: number;
}

export interface SavedQuestion {
  readonly row: InterruptRow;
  /** Its number among all questions of all threads. */
  readonly place: number;
}

export type Threads = Map<string, Thread> & { runs: number; questions: number; readonly longTerm: MemoryLongTerm };

export function newThread(id: string, headBranch: string, writer: WrittenBy, at: number): Thread {
  return {
    id,
    createdAt: at,
    headBranch,
    lines: new Map(),
    checkpoints: new Map(),
    runs: new Map(),
    facts: [],
    artifacts: noArtifacts(),
    queued: 0,
    owner: undefined,
    writer,
    writtenBy: writer,
    epoch: 0,
    seq: 0,
    checkpoint: 0,
    run: undefined,
    updatedAt: at,
  };
}

export function newLine(name: string, from: number | undefined, origin: Line | undefined): Line {
  return {
    name,
    from,
    origin,
    checkpoints: [],
    cuts: [],
    effects: new Map(),
    interrupts: new Map(),
    awaited: new Set(),
    timers: new Map(),
    letters: [],
    run: undefined,
  };
}

/** The checkpoint that the next one of a line goes on from. */
export function endOf(line: Line): number | undefined {
  return line.checkpoints.at(-1)?.checkpoint.id ?? line.from;
}
