/** Readers that do not read: bounded memory, merged text, and a cut; others are not held back. */
import type { RunEvent } from "@statewright/core";
import { expect, test } from "vitest";
import { SlowReaderError } from "../../src/http/slow-reader.ts";
import type { ThreadFrame } from "../../src/service/caller-service.ts";
import { createTapes, type Tapes } from "../../src/tape/tapes.ts";
import { WaitingEvents } from "../../src/tape/waiting-events.ts";
import { readTape } from "../support/read-tape.ts";
import { MessageView, Talk } from "../support/talk.ts";

const thread = "t";
const limits = { maxEvents: 5_000, maxBytes: 1_048_576 };

function createTalkTapes(): { readonly talk: Talk; readonly tapes: Tapes } {
  const talk = new Talk();
  const { store, relay, world } = talk;
  return { talk, tapes: createTapes({ store, relay, world }) };
}

/** Holds a live reader back from its snapshot on, until it is released. */
function createStall(): { readonly hold: (frame: ThreadFrame) => Promise<void>; readonly release: () => void } {
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { hold: async ({ type }) => (type === "snapshot" ? released : undefined), release };
}

test("a reader that stalls for a whole answer receives merged text, and the words of the answer once [V115]", async () => {
  const { talk, tapes } = createTalkTapes();
  const { hold, release } = createStall();
  const view = new MessageView();
  const onFrame = async (frame: ThreadFrame): Promise<void> => {
    view.show(frame);
    await hold(frame);
  };
  await talk.ask(thread);
  const reading = await readTape(tapes, thread, { onFrame });
  await talk.world.waitUntilIdle();
  const words = Array.from({ length: 12_000 }, (_, index) => `w${index} `);
  for (const [index, word] of words.entries()) {
    talk.speaker.say(word);
    if (index % 1_000 === 0) await talk.world.waitUntilIdle();
  }
  await talk.finish();
  await talk.world.waitUntilIdle();
  expect(reading.hasEnded).toBe(false);
  release();
  await talk.world.waitUntilIdle();
  expect(view.text).toBe(words.join(""));
  expect(reading.types.filter((type) => type === "message.delta").length).toBeLessThan(5_000);
  expect(reading.types.at(-1)).toBe("run.completed");
  await reading.stop();
});

test("a reader with too many events that cannot be merged is cut, and misses nothing when it comes back by its number [V115]", async () => {
  const { talk, tapes } = createTalkTapes();
  const small = createTapes({
    ...{ store: talk.store, relay: talk.relay, world: talk.world },
    waiting: { maxEvents: 20, maxBytes: 1_048_576 },
  });
  const { hold, release } = createStall();
  await talk.answer(thread);
  const reading = await readTape(small, thread, { onFrame: hold });
  await talk.world.waitUntilIdle();
  for (let turn = 0; turn < 10; turn++) await talk.answer(thread);
  release();
  await talk.world.waitUntilIdle();
  expect(reading.error).toBeInstanceOf(SlowReaderError);
  expect(small.threads).toBe(0);
  const back = await readTape(tapes, thread, { after: reading.last, end: "idle" });
  const whole = await readTape(tapes, thread, { end: "idle" });
  await talk.world.advance(1_000);
  const numbers = [...reading.frames, ...back.frames].flatMap((frame) =>
    frame.type === "step.committed" || frame.type.startsWith("run.") ? ["seq" in frame ? frame.seq : 0] : [],
  );
  expect(numbers).toEqual(
    whole.frames.flatMap((frame) => ("seq" in frame && frame.type !== "snapshot" ? [frame.seq] : [])),
  );
});

test("a reader that stalls while it reads stored events holds none of the tape, and reads on from the store [V115]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.answer(thread);
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const small = createTapes({
    ...{ store: talk.store, relay: talk.relay, world: talk.world },
    waiting: { maxEvents: 5, maxBytes: 1_024 },
  });
  const reading = await readTape(small, thread, { end: "idle", onFrame: () => released });
  await talk.world.waitUntilIdle();
  for (let turn = 0; turn < 20; turn++) await talk.answer(thread);
  release();
  await talk.world.advance(1_000);
  const whole = await readTape(tapes, thread, { end: "idle" });
  await talk.world.advance(1_000);
  expect([reading.hasEnded, reading.error]).toEqual([true, undefined]);
  expect(reading.frames.slice(0, -1)).toEqual(whole.frames.slice(0, -1));
});

test("100 stalled readers hold no more than their limits, and 100 good readers receive each word in its turn [V115, SS31]", async () => {
  const talk = new Talk();
  const { store, relay, world } = talk;
  const tapes = createTapes({ store, relay, world, waiting: { maxEvents: 50, maxBytes: 8_192 } });
  await talk.ask(thread);
  const stall = createStall();
  const stalled = [];
  const good = [];
  for (let count = 0; count < 100; count++) {
    stalled.push(await readTape(tapes, thread, { onFrame: stall.hold }));
    good.push(await readTape(tapes, thread));
  }
  await world.waitUntilIdle();
  for (let turn = 0; turn < 20; turn++) {
    talk.speaker.say("word ");
    await world.waitUntilIdle();
    expect(good.every(({ types }) => types.at(-1) === "message.delta")).toBe(true);
    await talk.finish();
    await talk.ask(thread);
  }
  await world.waitUntilIdle();
  expect(tapes.readers).toBe(200);
  stall.release();
  await world.waitUntilIdle();
  expect(stalled.every(({ error }) => error instanceof SlowReaderError)).toBe(true);
  expect(stalled.every(({ frames }) => frames.length === 3)).toBe(true);
  expect(good.every(({ hasEnded }) => !hasEnded)).toBe(true);
  expect(tapes.readers).toBe(100);
  for (const reading of good) await reading.stop();
  expect(world.clock.monotonic()).toBe(0);
});

function createDelta(index: number, text: string, messageId = "m"): RunEvent {
  const place = { node: "ask", task: "0:0", seq: index, at: 0, branch: "main" };
  return { type: "message.delta", kind: "text", messageId, text, ...place };
}

function createCommit(seq: number): RunEvent {
  return { type: "run.completed", steps: seq, seq, at: 0, branch: "main" };
}

/** Pushes events until the queue overflows. Returns the number of pushed events. */
function fill(waiting: WaitingEvents, create: (index: number) => RunEvent, count: number): number {
  for (let index = 0; index < count; index++)
    if (!waiting.push({ event: create(index), bytes: undefined })) return index + 1;
  return count;
}

test("waiting events are counted, and above 5,000 that cannot be merged the queue overflows [V115]", () => {
  expect(fill(new WaitingEvents(limits), createCommit, 6_000)).toBe(5_001);
  const waiting = new WaitingEvents(limits);
  expect(fill(waiting, (index) => createDelta(index, "word "), 100_000)).toBe(100_000);
  expect(waiting.size).toBeLessThanOrEqual(5_000);
});

test("waiting bytes are counted, and above 1 MiB that cannot be merged the queue overflows [V115]", () => {
  const kilobyte = "x".repeat(1_024);
  const pushed = fill(new WaitingEvents(limits), (index) => createDelta(index, kilobyte, `m${index}`), 2_000);
  expect(pushed).toBeGreaterThan(750);
  expect(pushed).toBeLessThan(1_025);
  const waiting = new WaitingEvents(limits);
  for (let round = 0; round < 10; round++) {
    fill(waiting, (index) => createDelta(index, kilobyte), 500);
    while (waiting.shift() !== undefined);
  }
  expect(fill(waiting, (index) => createDelta(index, kilobyte), 500)).toBe(500);
});

test("merged text keeps its order and its place before the events of other messages [V115]", () => {
  const waiting = new WaitingEvents({ maxEvents: 4, maxBytes: 1_048_576 });
  const events = [
    createDelta(1, "a"),
    createDelta(1, "b"),
    createCommit(2),
    createDelta(2, "c", "n"),
    createDelta(2, "d", "n"),
  ];
  for (const event of events) expect(waiting.push({ event, bytes: undefined })).toBe(true);
  const left = [waiting.shift(), waiting.shift(), waiting.shift(), waiting.shift()];
  expect(left).toEqual([createDelta(1, "ab"), createCommit(2), createDelta(2, "cd", "n"), undefined]);
});
