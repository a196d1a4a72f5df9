/** Ends of streams: idle threads, ended runs, deleted threads, unknown numbers, pruned events, and drain. */
import type { RunEvent, Store } from "@statewright/core";
import { pruneThread } from "@statewright/core/inspect";
import { expect, test } from "vitest";
import { RequestProblem } from "../../src/http/problem.ts";
import { StreamDrainedError } from "../../src/http/stream-drained.ts";
import { createTapes, type Tapes } from "../../src/tape/tapes.ts";
import { readTape, type TapeReading } from "../support/read-tape.ts";
import { Talk } from "../support/talk.ts";

const thread = "t";

function createTalkTapes(): { readonly talk: Talk; readonly tapes: Tapes } {
  const talk = new Talk();
  const { store, relay, world } = talk;
  return { talk, tapes: createTapes({ store, relay, world }) };
}

/** Runs of the started and ended runs among the frames, in order. */
function listRuns({ frames }: TapeReading): readonly string[] {
  return frames.flatMap((frame) => (frame.type === "run.started" ? [frame.run] : []));
}

/** Ids of the runs of the thread, oldest first. */
async function listRunIds(store: Store): Promise<readonly string[]> {
  return (await store.runs({ thread, order: "oldest" })).map(({ id }) => id);
}

test("a stream without an end stays open over runs [V19]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.answer(thread);
  const reading = await readTape(tapes, thread);
  await talk.answer(thread);
  await talk.answer(thread);
  await talk.world.advance(1_000);
  expect(reading.hasEnded).toBe(false);
  expect(listRuns(reading)).toEqual(await listRunIds(talk.store));
  await reading.stop();
});

test("a stream until idle ends after the last event of the last run, and at once on a thread without a run [V19]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.store.createThread({ thread, at: 0 });
  const empty = await readTape(tapes, thread, { end: "idle" });
  await talk.world.waitUntilIdle();
  expect([empty.hasEnded, empty.types]).toEqual([true, ["snapshot"]]);
  await talk.ask(thread);
  const reading = await readTape(tapes, thread, { end: "idle" });
  await talk.world.waitUntilIdle();
  await talk.enqueue(thread);
  talk.speaker.say("first");
  await talk.finish();
  await talk.world.advance(1_000);
  expect(reading.hasEnded).toBe(false);
  await talk.startQueued();
  await talk.finish();
  await talk.world.advance(1_000);
  expect(reading.hasEnded).toBe(true);
  expect(listRuns(reading)).toHaveLength(2);
  expect(reading.types.at(-1)).toBe("run.completed");
  const late = await readTape(tapes, thread, { end: "idle" });
  await talk.world.waitUntilIdle();
  expect([late.hasEnded, late.types.at(-1)]).toEqual([true, "snapshot"]);
  expect({ threads: tapes.threads, timers: talk.world.timers }).toEqual({ threads: 0, timers: 0 });
});

test("a stream until idle ends when the last queued run is cancelled, which is no event of the thread [V19]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.answer(thread);
  const queued = await talk.enqueue(thread);
  const reading = await readTape(tapes, thread, { end: "idle" });
  await talk.world.waitUntilIdle();
  expect(reading.hasEnded).toBe(false);
  await talk.store.dequeue(thread, queued, { at: 0, reason: "test" });
  await talk.world.advance(1_000);
  expect(reading.hasEnded).toBe(true);
});

test("the stream of a run ends after the last event of this run, also when another run follows at once [V19]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.answer(thread);
  await talk.ask(thread);
  const [first = "", second = ""] = await listRunIds(talk.store);
  const live = await readTape(tapes, thread, { end: { run: second } });
  await talk.world.waitUntilIdle();
  await talk.finish();
  await talk.answer(thread);
  await talk.world.advance(1_000);
  expect(live.hasEnded).toBe(true);
  expect(listRuns(live)).toEqual([first, second]);
  expect(live.types.at(-1)).toBe("run.completed");
  for (const after of [0, 2]) {
    const replay = await readTape(tapes, thread, { after, end: { run: first } });
    await talk.world.advance(1_000);
    expect(replay.hasEnded).toBe(true);
    expect(replay.types.at(-1)).toBe("run.completed");
    expect(replay.types).not.toContain("snapshot");
    expect(replay.types.filter((type) => type === "run.completed")).toHaveLength(1);
  }
});

test("the stream of a run that ended before the given number ends without events of later runs [V19]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.answer(thread);
  const [first = ""] = await listRunIds(talk.store);
  const whole = await readTape(tapes, thread, { end: { run: first } });
  await talk.world.waitUntilIdle();
  await talk.answer(thread);
  const reading = await readTape(tapes, thread, { after: whole.last, end: { run: first } });
  await talk.world.advance(1_000);
  expect([reading.hasEnded, reading.frames]).toEqual([true, []]);
});

test("the stream of a queued run shows the run before it, and ends when the queued run is cancelled [V19]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.ask(thread);
  const queued = await talk.enqueue(thread);
  const newest = (await readNewest(talk.store)).seq;
  const reading = await readTape(tapes, thread, { after: newest, end: { run: queued } });
  await talk.world.waitUntilIdle();
  talk.speaker.say("of the first run");
  await talk.world.waitUntilIdle();
  expect([reading.hasEnded, reading.types]).toEqual([false, ["snapshot", "message.delta"]]);
  await talk.store.dequeue(thread, queued, { at: 0, reason: "test" });
  await talk.world.advance(1_000);
  expect(reading.hasEnded).toBe(true);
  await talk.finish();
});

test("the stream of a queued run does not end with the run before it [V19]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.ask(thread);
  const queued = await talk.enqueue(thread);
  const reading = await readTape(tapes, thread, { after: (await readNewest(talk.store)).seq, end: { run: queued } });
  await talk.world.waitUntilIdle();
  await talk.finish();
  await talk.world.advance(1_000);
  expect([reading.hasEnded, reading.types.includes("run.completed")]).toEqual([false, true]);
  await talk.startQueued();
  await talk.finish();
  await talk.world.advance(1_000);
  expect([reading.hasEnded, listRuns(reading)]).toEqual([true, [queued]]);
});

/** Reads the newest durable event. */
async function readNewest(store: Store): Promise<Pick<RunEvent, "seq">> {
  const rows = await store.events(thread, { after: 0, limit: 1_000 });
  const last = rows.at(-1);
  if (last === undefined) return { seq: 0 };
  return "checkpoint" in last ? last.checkpoint : last.durableEvent;
}

test("a deleted thread ends its streams with one last frame, and a thread of the same id begins a new tape [V19]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.answer(thread);
  const readings = [await readTape(tapes, thread), await readTape(tapes, thread, { end: "idle", after: 1 })];
  const silent = await readTape(tapes, thread, { views: ["messages"] });
  await talk.world.waitUntilIdle();
  await talk.store.delete(thread);
  await talk.world.advance(1_000);
  expect(readings[0]?.types.at(-1)).toBe("thread.deleted");
  expect([silent.hasEnded, silent.types]).toEqual([true, ["snapshot", "thread.deleted"]]);
  expect(readings.map(({ hasEnded, error }) => [hasEnded, error])).toEqual(Array(2).fill([true, undefined]));
  expect({ threads: tapes.threads, timers: talk.world.timers }).toEqual({ threads: 0, timers: 0 });
  await talk.answer(thread);
  const next = await readTape(tapes, thread, { end: "idle" });
  await talk.world.advance(1_000);
  expect([next.hasEnded, next.types[0]]).toEqual([true, "run.started"]);
});

test("a thread that was deleted and made again between two looks ends its streams, too [V19]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.answer(thread);
  const reading = await readTape(tapes, thread);
  await talk.world.advance(10);
  await talk.store.delete(thread);
  await talk.answer(thread);
  await talk.world.advance(120_000);
  expect([reading.hasEnded, reading.types.at(-1)]).toEqual([true, "thread.deleted"]);
});

/** Returns the failure of a read. */
async function getReadFailure(reading: Promise<unknown>): Promise<unknown> {
  return reading.then(
    () => undefined,
    (error: unknown) => error,
  );
}

test("a number above the newest event, an unknown thread and an unknown branch are refused before the first frame [V19]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.answer(thread);
  const newest = (await readNewest(talk.store)).seq;
  const failure = await getReadFailure(readTape(tapes, thread, { after: newest + 1 }));
  expect(failure).toBeInstanceOf(RequestProblem);
  expect(failure).toMatchObject({ problem: { status: 409, code: "event_unknown" } });
  expect(await getReadFailure(readTape(tapes, "other"))).toMatchObject({ code: "unknown_thread" });
  expect(await getReadFailure(readTape(tapes, thread, { branch: "b" }))).toMatchObject({ code: "unknown_branch" });
  const reading = await readTape(tapes, thread, { after: newest });
  await reading.stop();
  expect(tapes.threads).toBe(0);
});

test("numbers that were pruned are one gap, and the reader continues after it [V19]", async () => {
  const { talk, tapes } = createTalkTapes();
  for (let count = 0; count < 5; count++) await talk.answer(thread);
  await pruneThread(talk.store, { thread, keepLast: 1 });
  const reading = await readTape(tapes, thread, { views: ["updates"] });
  await talk.world.waitUntilIdle();
  const gaps = reading.frames.filter((frame) => frame.type === "events.pruned");
  expect(gaps[0]).toMatchObject({ type: "events.pruned", from: 1 });
  expect(reading.types.at(-1)).toBe("snapshot");
  await reading.stop();
});

test("a drain ends a stream at once when no run is at work, and after the committed superstep when one is [V128]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.store.createThread({ thread: "silent", at: 0 });
  await talk.ask(thread);
  const readings = [await readTape(tapes, "silent"), await readTape(tapes, thread)];
  await talk.world.waitUntilIdle();
  tapes.drain();
  await talk.world.waitUntilIdle();
  expect(readings.map(({ hasEnded }) => hasEnded)).toEqual([true, false]);
  talk.speaker.say("word");
  await talk.finish();
  await talk.world.waitUntilIdle();
  expect(readings.every(({ error }) => error instanceof StreamDrainedError)).toBe(true);
  expect(readings[1]?.types.at(-1)).toBe("step.committed");
});

test("a reader on a branch receives the events of this branch and of its history [V20]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.answer(thread, "main");
  const { seq } = await readNewest(talk.store);
  const branch = await talk.fork(thread);
  await talk.answer(thread, "on main");
  await talk.answer(thread, "on the branch", { branch });
  const reading = await readTape(tapes, thread, { branch });
  await talk.world.waitUntilIdle();
  const branches = reading.frames.map((frame) => (frame.type === "thread.deleted" ? "" : frame.branch));
  expect(new Set(branches)).toEqual(new Set(["main", branch]));
  const later = reading.frames.filter((frame) => frame.type !== "thread.deleted" && frame.seq > seq);
  expect(later.every((frame) => frame.type !== "thread.deleted" && frame.branch === branch)).toBe(true);
  const stored = reading.frames.length;
  await talk.answer(thread, "again on main", { branch: "main" });
  await talk.answer(thread, "again on the branch", { branch });
  await talk.world.waitUntilIdle();
  const live = reading.frames.slice(stored);
  expect(live.filter((frame) => frame.type === "message.delta")).toHaveLength(1);
  expect(live.every((frame) => frame.type !== "thread.deleted" && frame.branch === branch)).toBe(true);
  await reading.stop();
});
