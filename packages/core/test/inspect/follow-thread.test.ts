/** Readers of a thread at work: durable events and frames of a relay, joined without loss and without repetition. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  defineTool,
  inject,
  memoryStore,
  type Relay,
  type RelayFrame,
  type RelayGap,
  type RunEvent,
  run,
  type Store,
  streamEvents,
} from "../../src/index.ts";
import { streamMessageText } from "../../src/inspect.ts";
import { isDurable } from "../../src/run/events/event-queue.ts";
import { memoryRelay } from "../../src/store.ts";
import { createAskingGraph, createUserInput } from "../support/acting-model.ts";
import { createDeferred, getFailure } from "../support/failure.ts";
import { createMessageView } from "../support/message-view.ts";
import { createSpeaker, type Speaker } from "../support/speaker.ts";
import { call, createToolLoop } from "../support/tool-loop.ts";
import { createVirtualWorld, type VirtualWorld } from "../support/virtual-world.ts";

const thread = "t";

/** A thread whose model says what the test tells it. */
interface Talk {
  readonly store: Store;
  readonly relay: Relay;
  readonly world: VirtualWorld;
  readonly speaker: Speaker;
  readonly ask: () => Promise<void>;
  readonly finish: () => Promise<void>;
}

function createTalk(relay: Relay = memoryRelay()): Talk {
  const store = memoryStore();
  const world = createVirtualWorld();
  const speaker = createSpeaker();
  const graph = createAskingGraph(speaker.model);
  let result: Promise<unknown> = Promise.resolve();
  return {
    ...{ store, relay, world, speaker },
    ask: async () => {
      result = run(graph, { store, thread, world, relay, input: createUserInput("Oslo?") }).result;
      await speaker.waitForRequest();
    },
    finish: async () => {
      speaker.finish();
      await result;
    },
  };
}

interface Reader {
  readonly events: RunEvent[];
  readonly stop: () => Promise<void>;
}

/** Reads a thread until `stop`. */
function follow(
  { store, relay, world }: Pick<Talk, "store" | "world"> & { readonly relay?: Relay },
  { after = 0, onEvent }: { readonly after?: number; readonly onEvent?: (event: RunEvent) => unknown } = {},
): Reader {
  const signal = new AbortController();
  const events: RunEvent[] = [];
  const reading = (async () => {
    const following = { thread, after, follow: signal.signal, everyMs: 50, ...(relay === undefined ? {} : { relay }) };
    for await (const event of streamEvents({ store, world, ...following })) {
      events.push(event);
      await onEvent?.(event);
    }
  })();
  return {
    events,
    stop: async () => {
      signal.abort();
      await reading;
    },
  };
}

test("a reader of the same process receives the words of a run at work, then their commit, in order [SE6]", async () => {
  const talk = createTalk();
  await talk.ask();
  const reader = follow(talk);
  await talk.world.waitUntilIdle();
  for (const word of ["In ", "Oslo ", "it rains."]) talk.speaker.say(word);
  await talk.finish();
  await talk.world.waitUntilIdle();
  await reader.stop();
  const types = reader.events.map((event) => (event.type === "message.delta" ? event.text : event.type));
  const shown = ["snapshot", "In ", "Oslo ", "it rains.", "message.completed", "step.committed", "run.completed"];
  expect(types.filter((type) => shown.includes(type))).toEqual(["step.committed", ...shown]);
  expect(reader.events.map(({ seq }) => seq)).toEqual(reader.events.map(({ seq }) => seq).toSorted((a, b) => a - b));
  expect(talk.world.timers).toBe(0);
});

test("a reader that reloads at each of 60 words sees all words so far in one snapshot, and every word once [SE6]", async () => {
  const talk = createTalk();
  await talk.ask();
  const words = Array.from({ length: 60 }, (_, index) => `word${index} `);
  const view = createMessageView();
  for (const [index, word] of words.entries()) {
    const reloaded = createMessageView();
    const reader = follow(talk, {
      after: 0,
      onEvent: (event) => {
        view.show(event);
        reloaded.show(event);
      },
    });
    await talk.world.waitUntilIdle();
    expect(reloaded.getText()).toBe(words.slice(0, index).join(""));
    talk.speaker.say(word);
    await talk.world.waitUntilIdle();
    expect(reloaded.getText()).toBe(words.slice(0, index + 1).join(""));
    expect(view.getText()).toBe(reloaded.getText());
    await reader.stop();
  }
  await talk.finish();
  const last = follow(talk, { after: view.getSeq(), onEvent: view.show });
  await last.stop();
  expect(view.getText()).toBe(words.join(""));
});

/** Calls `act` before and after each await of a read. */
function actAtEveryAwait({ store, relay }: Talk, act: () => Promise<void>): Pick<Talk, "store" | "relay"> {
  const around =
    <Args extends readonly unknown[], Value>(read: (...args: Args) => Promise<Value>) =>
    async (...args: Args): Promise<Value> => {
      await act();
      const value = await read(...args);
      await act();
      return value;
    };
  return {
    store: { ...store, events: around(store.events), thread: around(store.thread) },
    relay: { ...relay, snapshot: around(relay.snapshot) },
  };
}

/** Two questions, each answered by five words: what happens in the order of time. */
function createScript(talk: Talk): { readonly actions: (() => Promise<void>)[]; readonly text: string } {
  const answer = (name: string): readonly string[] => Array.from({ length: 5 }, (_, index) => `${name}${index} `);
  const questions = [answer("a"), answer("b")];
  const actions = questions.flatMap((words) => [
    talk.ask,
    ...words.map((word) => async () => talk.speaker.say(word)),
    talk.finish,
  ]);
  return { actions, text: questions.map((words) => words.join("")).join("\n") };
}

test("nothing is lost or repeated when something happens at every await of a join, from any moment on [SE6]", async () => {
  for (let joinAt = 1; joinAt <= 14; joinAt++) {
    const talk = createTalk();
    const { actions, text } = createScript(talk);
    for (const action of actions.splice(0, joinAt)) await action();
    const view = createMessageView();
    const reader = follow(
      { ...talk, ...actAtEveryAwait(talk, async () => actions.shift()?.()) },
      {
        onEvent: (event) => {
          view.show(event);
          expect(text.startsWith(view.getText()), `${joinAt}: ${event.type} shows ${view.getText()}`).toBe(true);
        },
      },
    );
    while (actions.length > 0) {
      await talk.world.advance(60);
      await actions.shift()?.();
    }
    await talk.world.advance(200);
    expect(view.getText(), `joined at ${joinAt}`).toBe(text);
    await reader.stop();
  }
});

/** Loses frames by a seed, and reports some of the losses. */
function createLossyRelay(relay: Relay, random: () => number): Relay {
  return {
    ...relay,
    subscribe: (id, listener) => {
      let isLosing = false;
      return relay.subscribe(id, (received: RelayFrame | RelayGap) => {
        if (isLosing ? random() < 0.7 : random() < 0.2) isLosing = true;
        else {
          if (isLosing && random() < 0.5) listener({ missing: true });
          isLosing = false;
          listener(received);
        }
      });
    },
    snapshot: async (id) => (random() < 0.2 ? undefined : relay.snapshot(id)),
  };
}

test("a reader of a relay that loses frames by a seed ends with the conversation, and repeats no word [SE6]", async () => {
  let snapshots = 0;
  for (let seed = 1; seed <= 60; seed++) {
    let chance = seed * 7_919;
    const random = (): number => {
      chance = (chance * 48_271) % 2_147_483_647;
      return chance / 2_147_483_647;
    };
    const talk = createTalk();
    const { actions, text } = createScript(talk);
    await actions.shift()?.();
    const view = createMessageView();
    const reader = follow(
      { ...talk, relay: createLossyRelay(talk.relay, random) },
      {
        onEvent: (event) => {
          if (event.type === "snapshot") snapshots += 1;
          view.show(event);
          expect(text.startsWith(view.getText()), `seed ${seed}: ${event.type} shows ${view.getText()}`).toBe(true);
        },
      },
    );
    for (const action of actions) {
      await action();
      if (random() < 0.5) await talk.world.advance(60);
    }
    await talk.world.advance(300);
    expect(view.getText(), `seed ${seed}`).toBe(text);
    await reader.stop();
  }
  expect(snapshots).toBeGreaterThan(120);
});

test("without a reachable relay the text of a thread arrives with its commit, after an empty snapshot [SE6]", async () => {
  const talk = createTalk();
  await talk.ask();
  const reader = follow({ ...talk, relay: memoryRelay() });
  talk.speaker.say("It rains.");
  await talk.world.advance(60);
  expect(reader.events.map(({ type }) => type)).toEqual(["run.started", "step.committed", "snapshot"]);
  await talk.finish();
  await talk.world.advance(60);
  await reader.stop();
  expect(reader.events.map(({ type }) => type).slice(3)).toEqual(["step.committed", "run.completed"]);
});

test("a store has a relay of its own, and models stream for it from its first follower on [SE6]", async () => {
  const { store, world } = createTalk();
  const speaker = createSpeaker();
  const graph = createAskingGraph(speaker.model);
  const streams: boolean[] = [];
  for (const turn of ["first", "second"]) {
    const asked = run(graph, { store, thread, world, input: createUserInput(turn) }).result;
    await speaker.waitForRequest();
    streams.push(speaker.isStreaming());
    const texts: string[] = [];
    const signal = new AbortController();
    const reading = (async () => {
      for await (const event of streamEvents({ store, thread, world, follow: signal.signal }))
        if (event.type === "message.delta") texts.push(event.text);
        else if (event.type === "snapshot") texts.push(...event.messages.map(({ text }) => `[${text}]`));
    })();
    speaker.say("one ");
    await world.waitUntilIdle();
    speaker.say("two");
    await world.waitUntilIdle();
    streams.push(texts.includes("two"));
    speaker.finish();
    await asked;
    signal.abort();
    await reading;
  }
  expect(streams).toEqual([false, false, true, true]);
});

/** Frames of a source, with one delta per text. */
function createFrames(
  source: { readonly epoch: number; readonly seq: number },
  texts: readonly string[],
): RelayFrame[] {
  const { epoch, seq } = source;
  return texts.map((text, nth) => ({
    ...{ source: `run_a.${epoch}`, run: "run_a", branch: "main", epoch, seq, index: nth + 1 },
    event: {
      ...{ type: "message.delta", kind: "text", messageId: `m${epoch}`, node: "ask", task: "0:0", text },
      ...{ seq, at: 0, branch: "main" },
    },
  }));
}

/** A thread with one finished run, and its newest sequence number. */
async function createFinishedTalk(): Promise<Talk & { readonly seq: number }> {
  const talk = createTalk(memoryRelay());
  await talk.ask();
  await talk.finish();
  let seq = 0;
  for await (const event of streamEvents({ store: talk.store, thread })) seq = event.seq;
  return { ...talk, seq };
}

/** Texts of snapshots in brackets, and of deltas. */
function listTexts(events: readonly RunEvent[]): readonly string[] {
  return events.flatMap((event) => {
    if (event.type === "snapshot") return [`[${event.messages.map(({ text }) => text).join()}]`];
    return event.type === "message.delta" ? [event.text] : [];
  });
}

test("the words of an owner that lost the thread are dropped when the next owner begins, and its late words are ignored [SE6]", async () => {
  const talk = await createFinishedTalk();
  const { relay, seq } = talk;
  const reader = follow(talk);
  await talk.world.waitUntilIdle();
  const before = createFrames({ epoch: 7, seq }, ["old", "late"]);
  const next = createFrames({ epoch: 8, seq }, ["new ", "words"]);
  for (const frame of [before[0], next[0], before[1], next[1]]) if (frame !== undefined) relay.publish(thread, [frame]);
  await talk.world.waitUntilIdle();
  await reader.stop();
  expect(listTexts(reader.events)).toEqual(["[]", "old", "[new ]", "words"]);
});

test("when the publisher is gone, a reader receives a snapshot without its words, and the next publisher is joined [SE6]", async () => {
  const talk = await createFinishedTalk();
  const { seq } = talk;
  let report: ((received: RelayFrame | RelayGap) => void) | undefined;
  let isReachable = true;
  const relay: Relay = {
    ...talk.relay,
    subscribe: (_, listener) => {
      report = listener;
      return () => undefined;
    },
    snapshot: async (id) => (isReachable ? talk.relay.snapshot(id) : undefined),
  };
  const reader = follow({ ...talk, relay });
  await talk.world.waitUntilIdle();
  for (const frame of createFrames({ epoch: 7, seq }, ["half a "])) report?.(frame);
  await talk.world.waitUntilIdle();
  isReachable = false;
  report?.({ missing: true });
  await talk.world.waitUntilIdle();
  for (const frame of createFrames({ epoch: 8, seq }, ["whole ", "sentence"])) report?.(frame);
  await talk.world.waitUntilIdle();
  await reader.stop();
  expect(listTexts(reader.events)).toEqual(["[]", "half a ", "[]", "whole ", "sentence"]);
});

test("a reader that is too slow for 10,000 frames continues with a snapshot of all words [SE6]", async () => {
  const talk = await createFinishedTalk();
  const { relay, seq } = talk;
  const reading = createDeferred();
  const reader = follow(talk, { onEvent: ({ type }) => (type === "message.delta" ? reading.promise : undefined) });
  await talk.world.waitUntilIdle();
  const words = Array.from({ length: 10_100 }, (_, index) => `w${index} `);
  relay.publish(thread, createFrames({ epoch: 7, seq }, words.slice(0, 1)));
  await talk.world.waitUntilIdle();
  relay.publish(thread, createFrames({ epoch: 7, seq }, words).slice(1));
  reading.resolve();
  await talk.world.waitUntilIdle();
  await reader.stop();
  const [first, begun, snapshot, ...rest] = listTexts(reader.events);
  expect([first, begun, `${snapshot?.slice(1, -1)}${rest.join("")}`]).toEqual(["[]", "w0 ", words.join("")]);
  expect(rest.length).toBeLessThan(10_000);
});

test("a relay carries the transient events of a run as its handle shows them, with secrets redacted [SE6]", async () => {
  const shows = createDeferred();
  const probe = defineTool({
    name: "probe",
    description: "Measures.",
    input: z.object({}),
    inject: { key: inject.secret("KEY") },
    run: async (_args, { progress, injected }) => {
      progress(`with ${injected.key}`);
      await shows.promise;
      return "done";
    },
  });
  const loop = createToolLoop({
    ...{ tools: [probe], turns: [["I look", call("probe")], ["It is fine"]] },
    secrets: { get: () => "sk-live-1" },
  });
  const { result } = loop.start();
  await loop.world.waitUntilIdle();
  const { store = memoryStore() } = loop;
  const reader = follow({ store, world: loop.world });
  const { events } = reader;
  await loop.world.waitUntilIdle();
  shows.resolve();
  await result;
  await loop.world.waitUntilIdle();
  await reader.stop();
  const [snapshot] = events.filter(({ type }) => type === "snapshot");
  expect(snapshot).toMatchObject({ tools: [] });
  const carried = events.filter((event) => !isDurable(event) && event.type !== "snapshot");
  const shown = loop.events.filter((event) => !isDurable(event) && event.type !== "transition.taken");
  expect(carried.length).toBeGreaterThan(3);
  expect(carried).toEqual(shown.slice(-carried.length));
  expect(JSON.stringify(events)).not.toContain("sk-live-1");
});

test("a snapshot shows the calls at work with their arguments and newest lines of progress [SE6]", async () => {
  const store = memoryStore();
  const relay = memoryRelay();
  const finished = createDeferred();
  const probe = defineTool({
    name: "probe",
    description: "Measures.",
    input: z.object({}),
    run: async (_args, { progress }) => {
      for (let line = 0; line < 120; line++) progress(`line ${line}`);
      await finished.promise;
      return "done";
    },
  });
  const { graph, world } = createToolLoop({ store, tools: [probe], turns: [["I look", call("probe")], ["Fine"]] });
  const { result } = run(graph, { ...{ store, thread, world, relay, context: {} }, input: createUserInput("go") });
  await world.waitUntilIdle();
  const reader = follow({ store, relay, world });
  await world.waitUntilIdle();
  const snapshot = reader.events.find((event) => event.type === "snapshot");
  expect(snapshot).toMatchObject({
    messages: [],
    tools: [{ callId: "id_probe", tool: "probe", status: "running", node: "tools", branch: "main" }],
  });
  const progress = snapshot?.tools[0]?.progress ?? [];
  expect([progress.length, progress[0], progress.at(-1)]).toEqual([100, "line 20", "line 119"]);
  finished.resolve();
  await result;
  await world.waitUntilIdle();
  await reader.stop();
  expect(await relay.snapshot(thread)).toBeUndefined();
});

test("the text stream of a thread has every word once over reconnects, gaps and runs, and marks words that did not count [SE6]", async () => {
  const talk = createTalk();
  let isLosing = false;
  const relay: Relay = {
    ...talk.relay,
    subscribe: (id, listener) => talk.relay.subscribe(id, (received) => (isLosing ? undefined : listener(received))),
  };
  await talk.ask();
  const stop = new AbortController();
  const texts: string[] = [];
  const reading = (async () => {
    const events = streamEvents({ store: talk.store, thread, relay, world: talk.world, follow: stop.signal });
    for await (const text of streamMessageText(events)) texts.push(text);
  })();
  for (const [index, word] of ["In ", "Oslo ", "it ", "rains ", "now"].entries()) {
    isLosing = index === 1 || index === 3;
    talk.speaker.say(word);
    await talk.world.waitUntilIdle();
  }
  isLosing = true;
  await talk.finish();
  await talk.world.advance(1_000);
  isLosing = false;
  await talk.ask();
  talk.speaker.say("Again it rains");
  await talk.finish();
  await talk.world.waitUntilIdle();
  expect(texts.join("")).toBe("In Oslo it rains now\nAgain it rains");
  for (const [nth, text] of ["Half", "Whole"].entries()) {
    talk.relay.publish(thread, createFrames({ epoch: 90 + nth, seq: 100 }, [text]));
    await talk.world.waitUntilIdle();
  }
  stop.abort();
  await reading;
  expect(texts.join("")).toContain("rains\nHalf\n[The answer above broke off and does not count.]\nWhole");
  await getFailure(() => streamMessageText([] as never, { wrong: 1 } as never), "invalid_option");
});

test("a lost frame leads to a snapshot at the next frame, and a report without a loss leads to none [SE6]", async () => {
  const talk = await createFinishedTalk();
  let report: ((received: RelayFrame | RelayGap) => void) | undefined;
  const subscribe: Relay["subscribe"] = (_, listener) => {
    report = listener;
    return () => undefined;
  };
  const reader = follow({ ...talk, relay: { ...talk.relay, subscribe } });
  await talk.world.waitUntilIdle();
  const frames = createFrames({ epoch: 7, seq: talk.seq }, ["one ", "two ", "three ", "four"]);
  for (const [nth, frame] of frames.entries()) {
    talk.relay.publish(thread, [frame]);
    if (nth !== 1) report?.(frame);
    await talk.world.waitUntilIdle();
  }
  report?.({ missing: true });
  await talk.world.waitUntilIdle();
  await reader.stop();
  expect(listTexts(reader.events)).toEqual(["[]", "one ", "[one two three ]", "four"]);
});

test("a publisher whose snapshot fails at first is joined with its next frame [SE6]", async () => {
  const talk = await createFinishedTalk();
  const frames = createFrames({ epoch: 7, seq: talk.seq }, ["one ", "two ", "three"]);
  talk.relay.publish(thread, frames.slice(0, 1));
  let attempts = 0;
  const snapshot: Relay["snapshot"] = async (id) => {
    attempts += 1;
    if (attempts === 1) throw new Error("the process is busy");
    return talk.relay.snapshot(id);
  };
  const reader = follow({ ...talk, relay: { ...talk.relay, snapshot } });
  await talk.world.waitUntilIdle();
  for (const frame of frames.slice(1)) {
    talk.relay.publish(thread, [frame]);
    await talk.world.waitUntilIdle();
  }
  await reader.stop();
  expect(listTexts(reader.events)).toEqual(["[]", "[one two ]", "three"]);
  expect(talk.world.lines.map(({ message }) => message)).toContain(
    "a snapshot could not be loaded; text arrives with its commit",
  );
});

test("a first follower never takes the end of an open message for the whole, beside a listener or a timeout [SE6]", async () => {
  for (const other of ["listener", "idle timeout"]) {
    const { store, world, speaker } = createTalk();
    const graph = createAskingGraph(speaker.model, {}, other === "listener" ? {} : { node: { idleTimeoutMs: 60_000 } });
    const handle = run(graph, { store, thread, world, input: createUserInput("Oslo?") });
    if (other === "listener") handle.on(() => undefined);
    await speaker.waitForRequest();
    speaker.say("In Oslo ");
    await world.waitUntilIdle();
    const texts: string[] = [];
    const reader = follow({ store, world }, { onEvent: (event) => texts.push(...listTexts([event])) });
    const stop = new AbortController();
    let text = "";
    const reading = (async () => {
      for await (const piece of streamMessageText(streamEvents({ store, thread, world, follow: stop.signal })))
        text += piece;
    })();
    await world.waitUntilIdle();
    speaker.say("it rains");
    await world.waitUntilIdle();
    expect(texts, other).toEqual(["[]"]);
    speaker.finish();
    await handle.result;
    await world.waitUntilIdle();
    await reader.stop();
    stop.abort();
    await reading;
    expect(text).toBe("In Oslo it rains");
    expect(reader.events.map(({ type }) => type)).toContain("message.completed");
  }
});
