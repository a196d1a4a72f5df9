/** Responses with server-sent events, without a server: first byte, beats, limits, rights, failures and drain. */
import { type VirtualClock, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import { RequestProblem } from "../../src/http/problem.ts";
import { createProblem } from "../../src/http/problem-table.ts";
import type { SseLine, StreamOptions } from "../../src/http/route.ts";
import { SlowReaderError } from "../../src/http/slow-reader.ts";
import { StreamDrainedError } from "../../src/http/stream-drained.ts";
import { createStreams, type StreamCall, type StreamLimits, type Streams } from "../../src/http/stream-response.ts";

const ada = { id: "ada", tenant: "one" };

/** Source that yields what the test pushes. */
class ScriptedSource {
  readonly signals: AbortSignal[] = [];
  /** Number of lines that the stream has taken. */
  taken = 0;
  #lines: SseLine[] = [];
  #end: { readonly error: unknown } | "done" | undefined;
  #wake: (() => void) | undefined;

  readonly open = (signal: AbortSignal): AsyncIterable<SseLine> => {
    this.signals.push(signal);
    signal.addEventListener("abort", () => this.#wake?.());
    return this.#read(signal);
  };

  push(...lines: readonly SseLine[]): void {
    this.#lines.push(...lines);
    this.#wake?.();
  }

  finish(): void {
    this.#end = "done";
    this.#wake?.();
  }

  fail(error: unknown): void {
    this.#end = { error };
    this.#wake?.();
  }

  async *#read(signal: AbortSignal): AsyncGenerator<SseLine, undefined, undefined> {
    while (!signal.aborted) {
      const line = this.#lines.shift();
      if (line !== undefined) {
        this.taken += 1;
        yield line;
      } else if (this.#end === "done") return undefined;
      else if (this.#end !== undefined) throw this.#end.error;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
    return undefined;
  }
}

interface Setup {
  readonly world: VirtualClock;
  readonly streams: Streams;
}

function createSetup(limits: Partial<StreamLimits> = {}): Setup {
  const world = virtualClock();
  const streams = createStreams({
    ...{ world, limits },
    toProblem: (error) => createProblem(error instanceof RangeError ? "store_locked" : "internal"),
  });
  return { world, streams };
}

function createCall(parts: Partial<StreamCall> = {}): StreamCall {
  return { caller: ada, signal: new AbortController().signal, isAllowed: () => true, ...parts };
}

/** Reads a response until it ends; `text` is what has arrived so far. */
function read(response: Response): {
  text: string;
  hasEnded: boolean;
  error: unknown;
  readonly cancel: () => Promise<void>;
} {
  const body = response.body;
  if (body === null) throw new Error("the response has no body");
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const state = { text: "", hasEnded: false, error: undefined as unknown, cancel: () => reader.cancel() };
  void (async () => {
    try {
      for (let part = await reader.read(); !part.done; part = await reader.read())
        state.text += decoder.decode(part.value, { stream: true });
    } catch (error) {
      state.error = error;
    }
    state.hasEnded = true;
  })();
  return state;
}

const failureFrames: StreamOptions = {
  formatFailure: ({ code }) => [{ event: "error", data: { code } }, { text: "[DONE]" }],
};

test("a stream sends a comment before its source has said anything, with headers that keep proxies from buffering [V6]", async () => {
  const { streams } = createSetup();
  const response = streams.respond(createCall(), new ScriptedSource().open, {
    headers: { "content-location": "/runs/1" },
  });
  expect(Object.fromEntries(response.headers)).toEqual({
    "cache-control": "no-cache, no-transform",
    "content-location": "/runs/1",
    "content-type": "text/event-stream",
    "x-accel-buffering": "no",
  });
  const first = await response.body?.getReader().read();
  expect(new TextDecoder().decode(first?.value)).toBe(": open\n");
});

test("every stream sends a comment each five seconds, with one timer for all streams and none after the last has ended [V37]", async () => {
  const { world, streams } = createSetup();
  const sources = Array.from({ length: 12 }, () => new ScriptedSource());
  const bodies = sources.map((source) => read(streams.respond(createCall(), source.open)));
  expect(world.timers).toBe(1);
  for (let seconds = 5; seconds <= 60; seconds += 5) {
    await world.advance(5_000);
    for (const { text } of bodies) expect(text).toBe(`: open\n${": beat\n".repeat(seconds / 5)}`);
  }
  for (const source of sources) source.finish();
  await world.waitUntilIdle();
  expect(bodies.every(({ hasEnded }) => hasEnded)).toBe(true);
  expect({ open: streams.open, timers: world.timers }).toEqual({ open: 0, timers: 0 });
});

test("lines of a turn of the event loop leave together and in order, and the stream ends when the source ends [V138]", async () => {
  const { world, streams } = createSetup();
  const source = new ScriptedSource();
  const body = read(streams.respond(createCall(), source.open));
  source.push({ id: "1", event: "a", data: { n: 1 } }, { data: "two" }, { text: "[DONE]" });
  await world.waitUntilIdle();
  expect(body).toMatchObject({ hasEnded: false });
  source.finish();
  await world.waitUntilIdle();
  expect(body).toMatchObject({
    text: ': open\nid: 1\nevent: a\ndata: {"n":1}\n\ndata: "two"\n\ndata: [DONE]\n\n',
    hasEnded: true,
    error: undefined,
  });
});

test("a reader that leaves stops the source in the same turn, by cancel and by the signal of its request [V116]", async () => {
  const { world, streams } = createSetup();
  const [cancelled, disconnected] = [new ScriptedSource(), new ScriptedSource()];
  const body = read(streams.respond(createCall(), cancelled.open));
  const request = new AbortController();
  const other = read(streams.respond(createCall({ signal: request.signal }), disconnected.open));
  await world.waitUntilIdle();
  void body.cancel();
  expect(cancelled.signals.map(({ aborted }) => aborted)).toEqual([true]);
  request.abort();
  expect(disconnected.signals.map(({ aborted }) => aborted)).toEqual([true]);
  await world.waitUntilIdle();
  expect({ open: streams.open, timers: world.timers, ended: other.hasEnded }).toEqual({
    open: 0,
    timers: 0,
    ended: true,
  });
});

test("a source waits while the connection takes no bytes, and goes on when it does [V115]", async () => {
  const { world, streams } = createSetup({ bufferBytes: 1_000 });
  const source = new ScriptedSource();
  const response = streams.respond(createCall(), source.open);
  source.push(...Array.from({ length: 500 }, (_, n) => ({ data: { n, text: "x".repeat(90) } })));
  await world.waitUntilIdle();
  expect(source.taken).toBeLessThan(15);
  const body = read(response);
  source.finish();
  await world.waitUntilIdle();
  expect(source.taken).toBe(500);
  expect(body.text.match(/"n":\d+/g)).toEqual(Array.from({ length: 500 }, (_, n) => `"n":${n}`));
});

test("a failure of the source becomes the last frames of the protocol and a proper end [V138]", async () => {
  const { world, streams } = createSetup();
  const source = new ScriptedSource();
  const body = read(streams.respond(createCall(), source.open, failureFrames));
  source.push({ data: 1 });
  source.fail(new Error("/secret/path"));
  await world.waitUntilIdle();
  expect(body).toMatchObject({
    text: ': open\ndata: 1\n\nevent: error\ndata: {"code":"internal"}\n\ndata: [DONE]\n\n',
    hasEnded: true,
    error: undefined,
  });
});

test("a failure of the store that will pass ends a stream with a comment, so that its client comes back [V119]", async () => {
  const { world, streams } = createSetup();
  const source = new ScriptedSource();
  const body = read(streams.respond(createCall(), source.open, failureFrames));
  source.push({ data: 1 });
  source.fail(new RangeError("the file is locked"));
  await world.waitUntilIdle();
  expect(body).toMatchObject({ text: ": open\ndata: 1\n\n: store_locked\n", hasEnded: true, error: undefined });
});

test("a line that cannot be encoded is a failure of the stream, not a broken frame [V138, V140]", async () => {
  const { world, streams } = createSetup();
  const source = new ScriptedSource();
  const body = read(streams.respond(createCall(), source.open, failureFrames));
  source.push({ event: "a\nb", data: 1 });
  await world.waitUntilIdle();
  expect(body.text).toBe(': open\nevent: error\ndata: {"code":"internal"}\n\ndata: [DONE]\n\n');
});

test("a slow reader is cut without a last frame, so that its client comes back by its number [V115]", async () => {
  const { world, streams } = createSetup();
  const source = new ScriptedSource();
  const body = read(streams.respond(createCall(), source.open, failureFrames));
  source.fail(new SlowReaderError());
  await world.waitUntilIdle();
  expect(body).toMatchObject({ text: ": open\n", hasEnded: true });
  expect(body.error).toBeInstanceOf(SlowReaderError);
  expect(streams.open).toBe(0);
});

test("a connection with waiting bytes that takes none for half a minute is cut, and a slow or silent one is not [V115]", async () => {
  const { world, streams } = createSetup({ bufferBytes: 1_000 });
  const sources = Array.from({ length: 3 }, () => new ScriptedSource());
  const [stalled, slow, silent] = sources.map((source) => streams.respond(createCall(), source.open).body?.getReader());
  const failure = stalled?.closed.catch((error: unknown) => error);
  const line = { data: "x".repeat(400) };
  sources[0]?.push(...Array.from({ length: 100 }, () => line));
  sources[1]?.push(...Array.from({ length: 100 }, () => line));
  await world.advance(25_000);
  expect(streams.open).toBe(3);
  for (let count = 0; count < 3; count++) {
    await slow?.read();
    await world.advance(10_000);
  }
  expect(streams.open).toBe(2);
  expect(sources.map(({ signals }) => signals[0]?.aborted)).toEqual([true, false, false]);
  expect(await failure).toBeInstanceOf(SlowReaderError);
  await Promise.all([slow?.cancel(), silent?.cancel()]);
  expect({ open: streams.open, timers: world.timers }).toEqual({ open: 0, timers: 0 });
});

test("a source that stops with its process ends the stream with a comment instead of the last frames of the protocol [V128]", async () => {
  const { world, streams } = createSetup();
  const source = new ScriptedSource();
  const body = read(streams.respond(createCall(), source.open, failureFrames));
  const drained = streams.drain({ graceMs: 3_000 });
  source.push({ data: "step" });
  source.fail(new StreamDrainedError());
  await world.waitUntilIdle();
  await drained;
  expect(body.text).toBe(': open\ndata: "step"\n\n: the server is stopping\n');
});

/** Returns the problem that opening a stream throws. */
function getProblem(streams: Streams, call: StreamCall): RequestProblem["problem"] | undefined {
  try {
    streams.respond(call, new ScriptedSource().open);
    return undefined;
  } catch (error) {
    if (error instanceof RequestProblem) return error.problem;
    throw error;
  }
}

test("a caller with 32 open streams is refused with 429 and a time to come back, and others are not [V117]", async () => {
  const { world, streams } = createSetup();
  const bodies = Array.from({ length: 32 }, () => read(streams.respond(createCall(), new ScriptedSource().open)));
  expect(getProblem(streams, createCall())).toMatchObject({
    status: 429,
    code: "too_many_streams",
    retryAfterMs: 5_000,
  });
  expect(getProblem(streams, createCall({ caller: { id: "ada", tenant: "two" } }))).toBeUndefined();
  await bodies[0]?.cancel();
  await world.waitUntilIdle();
  expect(getProblem(streams, createCall())).toBeUndefined();
});

test("a process opens at most 5,000 streams, and counts none that has ended [V117]", async () => {
  const { streams } = createSetup();
  const open = (index: number): StreamCall => createCall({ caller: { id: `user${index}`, tenant: "one" } });
  const responses = Array.from({ length: 5_000 }, (_, index) =>
    streams.respond(open(index), new ScriptedSource().open),
  );
  expect(getProblem(streams, open(5_000))).toMatchObject({ status: 429, retryAfterMs: 5_000 });
  await Promise.all(responses.map((response) => response.body?.cancel()));
  expect(streams.open).toBe(0);
  expect(getProblem(streams, open(5_000))).toBeUndefined();
});

test("a stream ends with a last frame within 60 seconds after the right of its caller has ended [V105]", async () => {
  const { world, streams } = createSetup();
  let isAllowed = true;
  const source = new ScriptedSource();
  const body = read(streams.respond(createCall({ isAllowed: () => isAllowed }), source.open, failureFrames));
  await world.advance(120_000);
  expect(body.hasEnded).toBe(false);
  isAllowed = false;
  await world.advance(60_000);
  expect(body).toMatchObject({ hasEnded: true, error: undefined });
  expect(body.text).toMatch(/event: error\ndata: \{"code":"access_ended"\}\n\ndata: \[DONE\]\n\n$/);
  expect(source.signals[0]?.aborted).toBe(true);
});

test("a stream ends when the right of its caller cannot be checked [V105]", async () => {
  const { world, streams } = createSetup();
  const isAllowed = (): never => {
    throw new Error("the directory is unreachable");
  };
  const body = read(streams.respond(createCall({ isAllowed }), new ScriptedSource().open, failureFrames));
  await world.advance(60_000);
  expect(body.hasEnded).toBe(true);
  expect(world.lines.map(({ level }) => level)).toEqual(["error"]);
});

test("a revoked caller loses its streams at once, and other callers keep theirs [V105]", async () => {
  const { world, streams } = createSetup();
  const revoked = new Set<string>();
  const open = (caller: typeof ada) => {
    const isAllowed = (): boolean => !revoked.has(`${caller.tenant}/${caller.id}`);
    return read(streams.respond(createCall({ caller, isAllowed }), new ScriptedSource().open, failureFrames));
  };
  const bodies = [open(ada), open({ id: "ada", tenant: "two" }), open({ id: "eve", tenant: "one" })];
  revoked.add("one/ada");
  await streams.revoke(ada);
  await world.waitUntilIdle();
  expect(bodies.map(({ hasEnded }) => hasEnded)).toEqual([true, false, false]);
});

test("a draining server opens no stream, and ends the open ones with a comment, at the latest after its grace [V128]", async () => {
  const { world, streams } = createSetup();
  const [quick, slow] = [new ScriptedSource(), new ScriptedSource()];
  const bodies = [quick, slow].map((source) => read(streams.respond(createCall(), source.open, failureFrames)));
  let isDrained = false;
  const drained = streams.drain({ graceMs: 3_000 }).then(() => {
    isDrained = true;
  });
  expect(getProblem(streams, createCall())).toMatchObject({ status: 503, code: "draining", retryAfterMs: 5_000 });
  quick.push({ data: "step" });
  quick.finish();
  await world.waitUntilIdle();
  expect(bodies.map(({ hasEnded }) => hasEnded)).toEqual([true, false]);
  expect(bodies[0]?.text).toBe(': open\ndata: "step"\n\n: the server is stopping\n');
  await world.advance(2_999);
  expect(isDrained).toBe(false);
  await world.advance(1);
  await drained;
  expect(bodies[1]).toMatchObject({ hasEnded: true, error: undefined });
  expect(bodies[1]?.text).toMatch(/: the server is stopping\n$/);
  expect(world.timers).toBe(0);
});
