/**
 * Events that wait for a reader. Above the limits, transient events are merged; a queue that is still too long
 * overflows, and the reader is cut. Bytes are counted only while events wait.
 */
import type { RunEvent } from "@statewright/core";
import { mergeQueuedEvents } from "@statewright/core/adapter";

/** Limits of the events that wait for a reader. */
export interface WaitingLimits {
  /** Maximum number of waiting events. */
  readonly maxEvents: number;
  /** Maximum bytes of waiting events, as JSON. */
  readonly maxBytes: number;
}

/** Event of a tape. All readers share it, so that its size is measured once. */
export interface TapeEvent {
  readonly event: RunEvent;
  /** Bytes as JSON; undefined until measured. */
  bytes: number | undefined;
}

/** Share of a limit that merging must free: otherwise each further event would merge the queue again. */
const freedShare = 0.1;

/** Bytes of an event without its text, for an event with text. */
const frameBytes = 256;

/** Queue of the events that wait for a reader. */
export class WaitingEvents {
  readonly #limits: WaitingLimits;
  #events: TapeEvent[] = [];
  /** Index of the oldest waiting event. */
  #first = 0;
  #bytes = 0;

  constructor(limits: WaitingLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#events.length - this.#first;
  }

  /** Adds an event. Returns false if the queue is above its limits, also after merging. */
  push(added: TapeEvent): boolean {
    added.bytes ??= measureEvent(added.event);
    this.#bytes += added.bytes;
    this.#events.push(added);
    return !this.#isAbove(1) || this.#merge();
  }

  shift(): RunEvent | undefined {
    const next = this.#events[this.#first];
    if (next === undefined) return undefined;
    this.#first += 1;
    this.#bytes -= next.bytes ?? 0;
    if (this.#first === this.#events.length) this.clear();
    return next.event;
  }

  clear(): void {
    this.#events = [];
    this.#first = 0;
    this.#bytes = 0;
  }

  #isAbove(share: number): boolean {
    const { maxEvents, maxBytes } = this.#limits;
    return this.size > maxEvents * share || this.#bytes > maxBytes * share;
  }

  #merge(): boolean {
    const events = mergeQueuedEvents(this.#events.slice(this.#first).map(({ event }) => event));
    this.#events = events.map((event) => ({ event, bytes: measureEvent(event) }));
    this.#first = 0;
    this.#bytes = this.#events.reduce((sum, { bytes = 0 }) => sum + bytes, 0);
    return !this.#isAbove(1 - freedShare);
  }
}

/** Estimates the bytes of an event as JSON; texts of models are not encoded for it. */
function measureEvent(event: RunEvent): number {
  if (event.type === "message.delta") return frameBytes + event.text.length;
  if (event.type === "message.call_delta") return frameBytes + event.argsText.length;
  return JSON.stringify(event).length;
}
