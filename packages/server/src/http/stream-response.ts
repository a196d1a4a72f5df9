/**
 * Responses with server-sent events: a byte at once, a steady comment, back-pressure, limits, and an end when the source
 * ends, the reader leaves, the right of the caller ends, or the server drains.
 */
import type { World } from "@statewright/core";
import type { Caller } from "../access/caller.ts";
import { type Problem, RequestProblem } from "./problem.ts";
import { createProblem } from "./problem-table.ts";
import type { SseLine, StreamOptions } from "./route.ts";
import { SlowReaderError } from "./slow-reader.ts";
import { createSseEncoder, type SseEncoder } from "./sse-encoder.ts";
import { StreamDrainedError } from "./stream-drained.ts";

/** Limits of the streams of a process. */
export interface StreamLimits {
  /** Maximum open streams of a caller. Default 32. */
  readonly perCaller: number;
  /** Maximum open streams of the process. Default 5,000. */
  readonly total: number;
  /** Bytes that wait for the connection before the source waits too. Default 65,536. */
  readonly bufferBytes: number;
}

/** Options of `createStreams`. */
export interface StreamsOptions {
  readonly world: World;
  readonly limits?: Partial<StreamLimits> | undefined;
  /** What the reader may know about a failure of a source. */
  readonly toProblem: (error: unknown) => Problem;
}

/** Request of a stream. */
export interface StreamCall {
  readonly caller: Caller;
  /** Fires when the client disconnects. */
  readonly signal: AbortSignal;
  /** Returns true while the caller has the right to the stream. Asked every 50 seconds, and at `revoke`. */
  readonly isAllowed: () => boolean | Promise<boolean>;
}

/** Source of the lines of a stream. */
export type StreamSource = (signal: AbortSignal) => AsyncIterable<SseLine>;

/** Open streams of a server. */
export interface Streams {
  /** Number of open streams. */
  readonly open: number;
  /** Answers with a stream. Throws a problem: 429 above a limit, 503 while the server drains. */
  respond(call: StreamCall, source: StreamSource, options?: StreamOptions): Response;
  /** Asks again for the rights of the streams of the caller, and ends those without. */
  revoke(caller: Pick<Caller, "id" | "tenant">): Promise<void>;
  /**
   * Opens no further stream. Streams end with their sources, and after `graceMs` at once, each with a comment. Resolves
   * when none is open.
   */
  drain(options: { readonly graceMs: number }): Promise<void>;
  /** Ends all streams at once. */
  close(): void;
}

const defaultLimits: StreamLimits = { perCaller: 32, total: 5_000, bufferBytes: 65_536 };

/** Time between two comments of a stream: proxies cut silent connections after 30 to 60 seconds. */
const beatMs = 5_000;

/** Groups of streams that beat at the same time: a single timer serves all streams, and spreads their comments. */
const beatGroups = 5;

/** Beats between two questions for the rights of a caller, which come at least every 60 seconds. */
const beatsPerRights = 10;

/** Beats without a read after which a connection with waiting bytes is cut. */
const maxStalledBeats = 6;

/** Time after which a refused client tries again. */
const retryAfterMs = 5_000;

/** Creates the streams of a server. */
export function createStreams(options: StreamsOptions): Streams {
  return new OpenStreams(options);
}

class OpenStreams implements Streams {
  readonly encoder: SseEncoder = createSseEncoder();
  readonly options: StreamsOptions;
  readonly limits: StreamLimits;
  readonly #groups: readonly Set<Stream>[] = Array.from({ length: beatGroups }, () => new Set<Stream>());
  readonly #callers: Map<string, number> = new Map();
  readonly #unflushed: Set<Stream> = new Set();
  #open = 0;
  #nextGroup = 0;
  #cancelBeat: (() => void) | undefined;
  #isDraining = false;
  #onEmpty: (() => void) | undefined;

  constructor(options: StreamsOptions) {
    this.options = options;
    this.limits = { ...defaultLimits, ...options.limits };
  }

  get open(): number {
    return this.#open;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  respond(call: StreamCall, source: StreamSource, options: StreamOptions = {}): Response {
    const key = toCallerKey(call.caller);
    this.#checkLimits(key);
    const group = this.#findSmallestGroup();
    const stream = new Stream({ streams: this, call, group, source, formatFailure: options.formatFailure });
    group.add(stream);
    this.#open += 1;
    this.#callers.set(key, (this.#callers.get(key) ?? 0) + 1);
    this.#startBeat();
    return new Response(stream.open(), {
      status: options.status ?? 200,
      headers: {
        "content-type": "text/event-stream",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
        ...options.headers,
      },
    });
  }

  async revoke(caller: Pick<Caller, "id" | "tenant">): Promise<void> {
    const key = toCallerKey(caller);
    const streams = this.#list().filter(({ call }) => toCallerKey(call.caller) === key);
    await Promise.all(streams.map((stream) => stream.checkRights()));
  }

  async drain({ graceMs }: { readonly graceMs: number }): Promise<void> {
    this.#isDraining = true;
    if (this.#open === 0) return;
    const cancel = this.options.world.schedule.after(graceMs, () => this.close());
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    cancel();
  }

  close(): void {
    this.#isDraining = true;
    for (const stream of this.#list()) stream.end();
  }

  /** Sends the text of the stream after the current turn of the event loop, together with that of other streams. */
  flushSoon(stream: Stream): void {
    if (this.#unflushed.size === 0) this.options.world.schedule.soon(() => this.#flush());
    this.#unflushed.add(stream);
  }

  #flush(): void {
    const streams = [...this.#unflushed];
    this.#unflushed.clear();
    for (const stream of streams) stream.flush();
  }

  #checkLimits(key: string): void {
    const { perCaller, total } = this.limits;
    if (this.#isDraining) throw new RequestProblem(createProblem("draining", { retryAfterMs }));
    const ofCaller = this.#callers.get(key) ?? 0;
    if (ofCaller < perCaller && this.#open < total) return;
    const detail = `Expected at most ${perCaller} open streams of a caller. Close one.`;
    const parts = { retryAfterMs, ...(ofCaller < perCaller ? {} : { detail }) };
    throw new RequestProblem(createProblem("too_many_streams", parts));
  }

  #findSmallestGroup(): Set<Stream> {
    return this.#groups.reduce((smallest, group) => (group.size < smallest.size ? group : smallest));
  }

  /** Counts the stream no more. */
  remove(stream: Stream): void {
    const key = toCallerKey(stream.call.caller);
    stream.group.delete(stream);
    this.#open -= 1;
    const left = (this.#callers.get(key) ?? 1) - 1;
    if (left === 0) this.#callers.delete(key);
    else this.#callers.set(key, left);
    if (this.#open > 0) return;
    this.#cancelBeat?.();
    this.#cancelBeat = undefined;
    this.#onEmpty?.();
  }

  #startBeat(): void {
    this.#cancelBeat ??= this.options.world.schedule.after(beatMs / beatGroups, () => {
      this.#cancelBeat = undefined;
      const group = this.#groups[this.#nextGroup];
      this.#nextGroup = (this.#nextGroup + 1) % beatGroups;
      for (const stream of [...(group ?? [])]) stream.beat();
      if (this.#open > 0) this.#startBeat();
    });
  }

  #list(): readonly Stream[] {
    return this.#groups.flatMap((group) => [...group]);
  }
}

interface StreamParts {
  readonly streams: OpenStreams;
  readonly call: StreamCall;
  /** Streams that beat at the same time. */
  readonly group: Set<Stream>;
  readonly source: StreamSource;
  readonly formatFailure: StreamOptions["formatFailure"];
}

const bytesOf = new TextEncoder();

function getByteLength({ byteLength }: Uint8Array): number {
  return byteLength;
}

/** Open stream: reads its source as fast as the connection takes the bytes. It is the source of its body. */
class Stream {
  readonly call: StreamCall;
  readonly group: Set<Stream>;
  readonly #streams: OpenStreams;
  readonly #source: StreamSource;
  readonly #formatFailure: StreamOptions["formatFailure"];
  readonly #abort = new AbortController();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** Text that waits for the end of the turn. */
  #text = "";
  #beats = 0;
  /** Beats since the connection has last taken bytes, and its room at the last beat. */
  #stalledBeats = 0;
  #lastRoom = 0;
  #hasEnded = false;
  #onPull: (() => void) | undefined;

  constructor({ streams, call, group, source, formatFailure }: StreamParts) {
    this.call = call;
    this.group = group;
    this.#streams = streams;
    this.#source = source;
    this.#formatFailure = formatFailure;
  }

  /** Called by the body. */
  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
  }

  /** Called by the body when it takes bytes. */
  pull(): void {
    this.#stalledBeats = 0;
    this.#onPull?.();
  }

  /** Called by the body when its reader leaves. */
  cancel(): void {
    this.#stop();
  }

  /** Called by the signal of the request when the client disconnects. */
  handleEvent(): void {
    this.#stop();
    this.#controller?.close();
  }

  open(): ReadableStream<Uint8Array> {
    const highWaterMark = this.#streams.limits.bufferBytes;
    const body = new ReadableStream<Uint8Array>(this, { highWaterMark, size: getByteLength });
    // Hosts send the headers with the first byte.
    this.#write({ comment: "open" });
    this.flush();
    if (this.call.signal.aborted) this.handleEvent();
    else {
      this.call.signal.addEventListener("abort", this, { once: true });
      void this.#pump();
    }
    return body;
  }

  /** Sends a comment, cuts a reader that does not read, and asks for the rights of the caller from time to time. */
  beat(): void {
    this.#beats += 1;
    const room = this.#getRoom();
    if (room > 0) this.#write({ comment: "beat" });
    else this.#stalledBeats = room === this.#lastRoom ? this.#stalledBeats + 1 : 0;
    this.#lastRoom = room;
    if (this.#stalledBeats > maxStalledBeats) this.#cut(new SlowReaderError());
    else if (this.#beats % beatsPerRights === 0) void this.checkRights();
  }

  /** Ends the stream if the caller has no right to it. Never rejects. */
  async checkRights(): Promise<void> {
    if (this.#hasEnded) return;
    try {
      if (await this.call.isAllowed()) return;
    } catch (error) {
      this.#streams.options.world.log("error", "the right to a stream could not be checked; the stream ends", {
        error: String(error),
      });
    }
    this.#fail(createProblem("access_ended"));
  }

  /** Ends the stream after a comment. */
  end(): void {
    if (this.#hasEnded) return;
    if (this.#streams.isDraining) this.#write({ comment: "the server is stopping" });
    this.#finish();
  }

  flush(): void {
    if (this.#text === "" || this.#hasEnded) return;
    const text = this.#text;
    this.#text = "";
    this.#controller?.enqueue(bytesOf.encode(text));
  }

  async #pump(): Promise<void> {
    try {
      for await (const line of this.#source(this.#abort.signal)) {
        this.#write(line);
        if (this.#getRoom() <= 0) await this.#waitForPull();
        if (this.#hasEnded) return;
      }
      this.end();
    } catch (error) {
      if (this.#hasEnded) return;
      if (error instanceof SlowReaderError) this.#cut(error);
      else if (error instanceof StreamDrainedError) this.end();
      else this.#fail(this.#streams.options.toProblem(error));
    }
  }

  #write(line: SseLine): void {
    if (this.#hasEnded) return;
    if (this.#text === "") this.#streams.flushSoon(this);
    this.#text += this.#streams.encoder.encode(line);
  }

  /** Bytes that the connection and its buffer take without a wait. */
  #getRoom(): number {
    return (this.#controller?.desiredSize ?? 0) - this.#text.length;
  }

  #waitForPull(): Promise<void> {
    this.flush();
    if (this.#hasEnded || this.#getRoom() > 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onPull = () => {
        this.#onPull = undefined;
        resolve();
      };
    });
  }

  /** Ends the stream with the last frames of its protocol; with a comment for a failure that will pass. */
  #fail(problem: Problem): void {
    if (this.#hasEnded) return;
    const format = problem.status === 503 ? undefined : this.#formatFailure;
    const lines = format?.(problem) ?? [{ comment: problem.code }];
    for (const line of lines) this.#write(line);
    this.#finish();
  }

  #finish(): void {
    this.flush();
    this.#stop();
    this.#controller?.close();
  }

  /** Breaks the connection: its reader takes no last frame. */
  #cut(error: SlowReaderError): void {
    this.#stop();
    this.#controller?.error(error);
  }

  /** Stops the source, in the same turn. */
  #stop(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#text = "";
    this.call.signal.removeEventListener("abort", this);
    this.#abort.abort();
    this.#onPull?.();
    this.#streams.remove(this);
  }
}

function toCallerKey({ id, tenant }: Pick<Caller, "id" | "tenant">): string {
  return `${tenant} ${id}`;
}
