/** Readers that join a tape: stored events, one snapshot, then the events of the tape. */
import { memoryStore, type RunEvent, type Store, streamEvents } from "@statewright/core";
import { isDurable } from "@statewright/core/adapter";
import { memoryRelay } from "@statewright/core/store";
import { expect, test } from "vitest";
import type { ThreadFrame } from "../../src/service/caller-service.ts";
import { createTapes, type Tapes } from "../../src/tape/tapes.ts";
import { readTape } from "../support/read-tape.ts";
import { MessageView, Talk } from "../support/talk.ts";

const thread = "t";

function createTalkTapes(talk: Talk = new Talk()): { readonly talk: Talk; readonly tapes: Tapes } {
  const { store, relay, world } = talk;
  return { talk, tapes: createTapes({ store, relay, world }) };
}

/** Numbers of all durable events in the store. */
async function listStored(store: Store): Promise<readonly number[]> {
  const numbers: number[] = [];
  for await (const { seq } of streamEvents({ store, thread })) numbers.push(seq);
  return numbers;
}

function listDurable(frames: readonly ThreadFrame[]): readonly number[] {
  return frames.flatMap((frame) => (frame.type !== "thread.deleted" && isDurable(frame) ? [frame.seq] : []));
}

/** Seeded random numbers below a limit. */
function createChance(seed: number): (below: number) => number {
  let state = seed * 7_919;
  return (below) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
}

test("stored events come first, then one snapshot of what is open, then the words as they come, and their commit [V17]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.answer(thread, "before");
  await talk.ask(thread);
  talk.speaker.say("one ");
  const reading = await readTape(tapes, thread);
  await talk.world.waitUntilIdle();
  const stored = await listStored(talk.store);
  expect(reading.types.indexOf("snapshot")).toBe(stored.length);
  expect(listDurable(reading.frames)).toEqual(stored);
  expect(reading.frames.at(-1)).toMatchObject({ type: "snapshot", messages: [{ text: "one " }] });
  talk.speaker.say("two");
  await talk.finish();
  await talk.world.waitUntilIdle();
  expect(reading.types.slice(stored.length)).toEqual([
    ...["snapshot", "message.delta", "task.completed", "message.completed", "step.committed", "run.completed"],
  ]);
  expect(reading.types.filter((type) => type === "snapshot")).toHaveLength(1);
  await reading.stop();
  await talk.world.waitUntilIdle();
  expect({ threads: tapes.threads, timers: talk.world.timers }).toEqual({ threads: 0, timers: 0 });
});

test("a client that reloads at each of 60 words shows every word once [V17]", async () => {
  const { talk, tapes } = createTalkTapes();
  const words = Array.from({ length: 60 }, (_, index) => `word${index} `);
  await talk.ask(thread);
  const kept = new MessageView();
  let last = 0;
  for (const [index, word] of words.entries()) {
    const reloaded = new MessageView();
    const readings = [
      await readTape(tapes, thread, { onFrame: (frame) => reloaded.show(frame) }),
      await readTape(tapes, thread, { after: last, onFrame: (frame) => kept.show(frame) }),
    ];
    await talk.world.waitUntilIdle();
    expect([reloaded.text, kept.text]).toEqual(Array(2).fill(words.slice(0, index).join("")));
    talk.speaker.say(word);
    await talk.world.waitUntilIdle();
    expect([reloaded.text, kept.text]).toEqual(Array(2).fill(words.slice(0, index + 1).join("")));
    for (const reading of readings) await reading.stop();
    last = readings[1]?.last ?? 0;
  }
  await talk.finish();
  const reading = await readTape(tapes, thread, { after: last, onFrame: (frame) => kept.show(frame) });
  await talk.world.waitUntilIdle();
  await reading.stop();
  expect(kept.text).toBe(words.join(""));
});

test("a client whose connection is cut 200 times at random receives every durable event once, in order [V16]", async () => {
  const { talk, tapes } = createTalkTapes();
  const chance = createChance(3);
  const received: number[] = [];
  await talk.ask(thread);
  for (let cut = 0; cut < 200; cut++) {
    const patience = chance(6);
    const reading = await readTape(tapes, thread, { after: received.at(-1) ?? 0 });
    for (let act = 0; act < patience; act++) {
      if (chance(3) > 0) talk.speaker.say("word ");
      else {
        await talk.finish();
        await talk.ask(thread);
      }
      if (chance(2) > 0) await talk.world.waitUntilIdle();
    }
    await reading.stop();
    received.push(...listDurable(reading.frames));
  }
  await talk.finish();
  const reading = await readTape(tapes, thread, { after: received.at(-1) ?? 0 });
  await talk.world.waitUntilIdle();
  await reading.stop();
  received.push(...listDurable(reading.frames));
  const stored = await listStored(talk.store);
  expect(stored.length).toBeGreaterThan(300);
  expect(received).toEqual(stored);
});

/** Calls `act` before and after each await of a read. */
function actAtEveryAwait(talk: Talk, act: () => Promise<void>): Pick<Talk, "store" | "relay"> {
  const around =
    <Args extends readonly unknown[], Value>(read: (...args: Args) => Promise<Value>) =>
    async (...args: Args): Promise<Value> => {
      await act();
      const value = await read(...args);
      await act();
      return value;
    };
  const { store, relay } = talk;
  return {
    store: {
      ...store,
      events: around(store.events),
      thread: around(store.thread),
      branches: around(store.branches),
      ...(store.supersteps === undefined ? {} : { supersteps: around(store.supersteps) }),
    },
    relay: { ...relay, snapshot: around(relay.snapshot) },
  };
}

test("no event is lost or repeated when something happens at every await of a join, from any moment on [V18]", async () => {
  const answers = ["a", "b"].map((name) => Array.from({ length: 5 }, (_, index) => `${name}${index} `));
  const text = answers.map((words) => words.join("")).join("\n");
  for (let joinAt = 1; joinAt <= 14; joinAt++) {
    const talk = new Talk();
    const script = answers.flatMap((words) => [
      () => talk.ask(thread),
      ...words.map((word) => async () => talk.speaker.say(word)),
      () => talk.finish(),
    ]);
    for (const action of script.splice(0, joinAt)) await action();
    let acting: Promise<unknown> = Promise.resolve();
    const act = async (): Promise<void> => {
      acting = acting.then(() => script.shift()?.());
      await acting;
    };
    const parts = actAtEveryAwait(talk, act);
    const tapes = createTapes({ ...parts, world: talk.world });
    const views = [new MessageView(), new MessageView()];
    const readings = [];
    for (const view of views) {
      const onFrame = (frame: ThreadFrame): void => {
        view.show(frame);
        expect(text.startsWith(view.text), `joined at ${joinAt}: ${frame.type} shows ${view.text}`).toBe(true);
      };
      readings.push(await readTape(tapes, thread, { onFrame }));
    }
    while (script.length > 0) {
      await talk.world.advance(60);
      await act();
    }
    await talk.world.advance(1_000);
    const stored = await listStored(talk.store);
    for (const [index, reading] of readings.entries()) {
      expect(reading.error).toBeUndefined();
      expect(views[index]?.text, `joined at ${joinAt}`).toBe(text);
      expect(listDurable(reading.frames)).toEqual(stored);
      await reading.stop();
    }
  }
});

test("a reader that is ahead of a new tape repeats no event and begins with a snapshot [V18]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.answer(thread);
  const newest = (await listStored(talk.store)).at(-1) ?? 0;
  const reading = await readTape(tapes, thread, { after: newest });
  await talk.world.waitUntilIdle();
  expect(reading.types).toEqual(["snapshot"]);
  await talk.answer(thread);
  await talk.world.waitUntilIdle();
  expect(listDurable(reading.frames)[0]).toBe(newest + 1);
  await reading.stop();
});

test("readers of one thread share one tape, which follows the thread once [V116]", async () => {
  const talk = new Talk();
  let subscriptions = 0;
  let reads = 0;
  const relay = {
    ...talk.relay,
    subscribe: (...args: Parameters<typeof talk.relay.subscribe>) => {
      subscriptions += 1;
      return talk.relay.subscribe(...args);
    },
  };
  const events: Store["events"] = (id, page) => {
    reads += 1;
    return talk.store.events(id, page);
  };
  const tapes = createTapes({ store: { ...talk.store, events }, relay, world: talk.world });
  await talk.answer(thread);
  const newest = (await listStored(talk.store)).at(-1) ?? 0;
  const readings = [];
  for (let count = 0; count < 100; count++) readings.push(await readTape(tapes, thread, { after: newest }));
  await talk.world.waitUntilIdle();
  expect({ subscriptions, threads: tapes.threads, readers: tapes.readers }).toEqual({
    ...{ subscriptions: 1, threads: 1, readers: 100 },
  });
  reads = 0;
  await talk.ask(thread);
  for (let word = 0; word < 50; word++) talk.speaker.say("word ");
  await talk.finish();
  await talk.world.waitUntilIdle();
  expect(reads).toBeLessThan(10);
  for (const reading of readings) {
    expect(reading.types.filter((type) => type === "message.delta")).toHaveLength(50);
    await reading.stop();
  }
});

test("memory is in the number of threads with readers, and no tape, listener or timer is left of those that were visited [V116]", async () => {
  const talk = new Talk();
  const listeners = new Set<string>();
  const store: Store = {
    ...talk.store,
    watch: (listener, options) => {
      const stop = talk.store.watch?.(listener, options);
      listeners.add("store");
      return () => {
        listeners.delete("store");
        stop?.();
      };
    },
  };
  const relay = {
    ...talk.relay,
    subscribe: (id: string, listener: Parameters<typeof talk.relay.subscribe>[1]) => {
      const stop = talk.relay.subscribe(id, listener);
      listeners.add(id);
      return () => {
        listeners.delete(id);
        stop();
      };
    },
  };
  const tapes = createTapes({ store, relay, world: talk.world });
  for (let batch = 0; batch < 20; batch++) {
    const names = Array.from({ length: 50 }, (_, index) => `t${batch}-${index}`);
    const at = talk.world.clock.now();
    const readings = await Promise.all(
      names.map(async (id) => {
        await store.createThread({ thread: id, at });
        return readTape(tapes, id);
      }),
    );
    await talk.world.waitUntilIdle();
    expect(tapes.threads).toBe(50);
    expect(listeners.size).toBe(51);
    expect(readings.every(({ types }) => types.join() === "snapshot")).toBe(true);
    await Promise.all(readings.map((reading) => reading.stop()));
  }
  await talk.world.waitUntilIdle();
  expect({ threads: tapes.threads, readers: tapes.readers, timers: talk.world.timers }).toEqual({
    ...{ threads: 0, readers: 0, timers: 0 },
  });
  expect([...listeners]).toEqual([]);
});

test("a stream that nobody reads leaves no tape behind [V116]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.answer(thread);
  await tapes.read(thread, { signal: new AbortController().signal });
  await talk.world.waitUntilIdle();
  expect(tapes.threads).toBe(0);
});

test("a reader without a relay in reach receives the text with its commit, found by a hint of the store [V17]", async () => {
  const talk = new Talk();
  const tapes = createTapes({ store: talk.store, relay: memoryRelay(), world: talk.world });
  await talk.ask(thread);
  const reading = await readTape(tapes, thread);
  talk.speaker.say("It rains.");
  await talk.world.advance(60);
  expect(reading.types).toEqual(["run.started", "step.committed", "snapshot"]);
  await talk.finish();
  await talk.world.advance(60);
  expect(reading.types.slice(3)).toEqual(["step.committed", "run.completed"]);
  await reading.stop();
});

test("a failure of the store reaches all readers of the tape, and the next reader begins a new tape [V119]", async () => {
  const talk = new Talk(memoryStore());
  let failure: Error | undefined;
  const store: Store = {
    ...talk.store,
    events: async (...args) => {
      if (failure !== undefined) throw failure;
      return talk.store.events(...args);
    },
  };
  const tapes = createTapes({ store, relay: memoryRelay(), world: talk.world });
  await talk.answer(thread);
  const readings = [await readTape(tapes, thread), await readTape(tapes, thread)];
  await talk.world.waitUntilIdle();
  failure = new Error("the disk is gone");
  await talk.answer(thread);
  await talk.world.advance(60);
  expect(readings.map(({ hasEnded, error }) => [hasEnded, error])).toEqual(Array(2).fill([true, failure]));
  expect(tapes.threads).toBe(0);
  failure = undefined;
  const next = await readTape(tapes, thread);
  await talk.world.waitUntilIdle();
  expect(listDurable(next.frames)).toEqual(await listStored(talk.store));
  await next.stop();
});

/** Text of the deltas of a stream. */
function getText(frames: readonly ThreadFrame[]): string {
  const isDelta = (frame: ThreadFrame): frame is Extract<RunEvent, { readonly type: "message.delta" }> =>
    frame.type === "message.delta";
  return frames
    .filter(isDelta)
    .map(({ text }) => text)
    .join("");
}

test("views leave out events and change no number [V20]", async () => {
  const { talk, tapes } = createTalkTapes();
  await talk.ask(thread);
  const all = await readTape(tapes, thread);
  const messages = await readTape(tapes, thread, { views: ["messages"] });
  const steps = await readTape(tapes, thread, { views: ["updates"] });
  await talk.world.waitUntilIdle();
  talk.speaker.say("It rains.");
  await talk.finish();
  await talk.world.waitUntilIdle();
  for (const reading of [all, messages, steps]) await reading.stop();
  expect(new Set(messages.types)).toEqual(new Set(["snapshot", "message.delta", "message.completed"]));
  expect(getText(messages.frames)).toBe("It rains.");
  expect(new Set(steps.types)).toEqual(new Set(["snapshot", "step.committed"]));
  for (const { frames } of [messages, steps]) expect(all.frames).toEqual(expect.arrayContaining(frames));
});
