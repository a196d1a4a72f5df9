/** The mapper of the streaming events protocol: golden files from recorded tapes, and the rules of its frames. */
import type { RunEvent } from "@statewright/core";
import { isDurable } from "@statewright/core/adapter";
import { describe, expect, test } from "vitest";
import { readGolden, readTape } from "../support/golden-tapes.ts";
import { tapeNames } from "../support/tape-graphs.ts";
import { dropEvents, formatV2Tape, mapV2Tape, rejoinTape, V2TestClient } from "../support/v2-tape.ts";

function mapNamed(name: string) {
  return mapV2Tape(readTape(name, "v2").events);
}

/** Names of the lifecycle of the outermost graph. */
function listLifecycle(name: string): readonly unknown[] {
  const frames = mapNamed(name).filter(({ channel, namespace }) => channel === "lifecycle" && namespace.length === 0);
  return frames.map(({ data }) => Reflect.get(Object(data), "event"));
}

describe("golden files of v2", () => {
  test.each(tapeNames)("the tape %s gives the v2 frames of its golden file [V4, V143]", (name) => {
    expect(formatV2Tape(mapNamed(name))).toBe(readGolden(name, "v2"));
  });

  test("the same tape gives the same v2 frames a second time: the mapper keeps nothing but its memory [V4]", () => {
    for (const name of tapeNames) expect(formatV2Tape(mapNamed(name))).toBe(formatV2Tape(mapNamed(name)));
  });
});

describe("v2 frames", () => {
  test("ids of v2 frames are unique, and their numbers count up from the number of the durable event [V43]", () => {
    for (const name of tapeNames) {
      const frames = mapNamed(name);
      expect(new Set(frames.map(({ eventId }) => eventId)).size).toBe(frames.length);
      const numbers = frames.map(({ seq }) => seq);
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
      const [started] = frames;
      expect(started?.seq).toBe(1 * 100_000 * 16);
    }
  });

  test("ids of the lifecycle name the run, as clients read them [V43]", () => {
    const { events } = readTape("waiting", "v2");
    const started = events.find((event) => event.type === "run.started");
    const ids = mapNamed("waiting").filter(({ channel }) => channel === "lifecycle");
    expect(started?.type).toBe("run.started");
    for (const { eventId, seq } of ids)
      expect(eventId).toBe(`synth:${started?.type === "run.started" ? started.run : ""}:${seq}`);
  });

  test("a client that loses its connection at any event gets each word of v2 once, from any process [V43]", () => {
    for (const name of tapeNames) {
      const { events } = readTape(name, "v2");
      const whole = new V2TestClient();
      whole.read(mapV2Tape(events));
      for (let index = 1; index < events.length; index++) {
        const client = new V2TestClient();
        client.read(mapV2Tape(events.slice(0, index)));
        client.read(mapV2Tape(rejoinTape(events, index)));
        const finished = (of: V2TestClient) =>
          of.messages
            .filter(({ end }) => end === "finished")
            .map(({ id, text, blocks }) => [id, text, [...blocks.values()]]);
        expect({ name, index, messages: finished(client) }).toEqual({ name, index, messages: finished(whole) });
        const durable = (of: V2TestClient) =>
          of.frames.map(({ eventId }) => eventId).filter((id) => /^(e|synth)/.test(id));
        expect(durable(client)).toEqual(durable(whole));
      }
    }
  });

  test("a reader of v2 that is too slow for some events gets each word once as well [V43]", () => {
    for (const name of tapeNames) {
      const { events } = readTape(name, "v2");
      const finished = (tape: readonly RunEvent[]) => {
        const client = new V2TestClient();
        client.read(mapV2Tape(tape));
        return client.messages.filter(({ end }) => end === "finished").map(({ id, text }) => [id, text]);
      };
      const whole = finished(events);
      for (let from = 1; from < events.length; from++)
        for (let to = from + 1; to < events.length; to += 3)
          expect({ name, from, to, texts: finished(dropEvents(events, from, to)) }).toEqual({
            name,
            from,
            to,
            texts: whole,
          });
    }
  });

  test("a message of v2 whose process is out of reach ends with its commit, and each word comes once [V43]", () => {
    const { events } = readTape("text", "v2");
    const at = events.findLastIndex(({ type }) => type === "message.delta");
    const last = events[at];
    if (last === undefined) throw new Error("the tape has no text");
    const { seq, branch } = last;
    const lost: RunEvent = { type: "snapshot", run: undefined, messages: [], tools: [], seq, at: last.at, branch };
    const client = new V2TestClient();
    client.read(mapV2Tape([...events.slice(0, at), lost, ...events.slice(at).filter(isDurable)]));
    expect(client.messages).toMatchObject([{ text: "Hello there, friend.", end: "finished" }]);
  });

  test("retracted text ends with an error on its v2 message and the state without it; the next text is a new start [V32]", () => {
    for (const [name, first, second] of [
      ["retraction", "one two three", "The right answer."],
      ["crash", "Half an ", "The whole answer."],
    ]) {
      const client = new V2TestClient();
      client.read(mapNamed(name ?? ""));
      const [retracted, answer] = client.messages;
      expect(first).toContain(retracted?.text);
      expect(retracted).toMatchObject({ end: "error" });
      expect(answer).toMatchObject({ id: retracted?.id, text: second, end: "finished" });
      const at = client.frames.findIndex(({ data }) => Reflect.get(Object(data), "event") === "error");
      expect(client.frames[at + 1]).toMatchObject({ method: "values", data: { messages: [{ type: "human" }] } });
    }
  });

  test("text of a request that a dead process had not recorded is taken back in v2 when the model begins again [V32]", () => {
    const lost: ReadonlySet<string> = new Set(["effect.repeated", "message.retracted"]);
    const client = new V2TestClient();
    client.read(mapV2Tape(readTape("crash", "v2").events.filter(({ type }) => !lost.has(type))));
    expect(client.messages).toMatchObject([{ end: "error" }, { text: "The whole answer.", end: "finished" }]);
  });

  test("a call is shown as started in v2 when its body begins: a call that was denied never is [V33]", () => {
    const tools = mapNamed("waiting")
      .filter(({ channel }) => channel === "tools")
      .map(({ data }) => data);
    const started = tools.filter((data) => Reflect.get(Object(data), "event") === "tool-started");
    expect(started).toEqual([
      { event: "tool-started", tool_call_id: "call_1", tool_name: "pay", input: { amount: 1 } },
    ]);
    const asked = mapNamed("waiting").findIndex(({ method }) => method === "input.requested");
    const begun = mapNamed("waiting").findIndex(({ channel }) => channel === "tools");
    expect(asked).toBeLessThan(begun);
  });

  test("approvals of a step are requested as one input of v2, and their answers are announced together [V45]", () => {
    const inputs = mapNamed("waiting").filter(({ channel }) => channel === "input");
    expect(inputs.map(({ method }) => method)).toEqual(["input.requested", "input.answered"]);
    expect(inputs[0]?.data).toMatchObject({
      interrupt_id: "1:0:call_1",
      payload: {
        action_requests: [
          { name: "pay", args: { amount: 1 } },
          { name: "pay", args: { amount: 2 } },
        ],
      },
    });
    expect(inputs[1]?.data).toEqual({ interrupt_ids: ["1:0:call_1"] });
    const raw = mapV2Tape(readTape("waiting", "v2").events, { hitl: false }).filter(
      ({ method }) => method === "input.requested",
    );
    expect(raw.map(({ data }) => Reflect.get(Object(data), "payload"))).toMatchObject([
      { callId: "call_1", args: { amount: 1 } },
      { callId: "call_2", args: { amount: 2 } },
    ]);
  });

  test("the v2 lifecycle of a run ends with the status of the run, and a failure tells its code and title only [V35]", () => {
    expect(listLifecycle("text")).toEqual(["running", "completed"]);
    expect(listLifecycle("waiting")).toEqual(["running", "interrupted", "running", "completed"]);
    expect(listLifecycle("cancel")).toEqual(["running", "interrupted"]);
    expect(listLifecycle("crash")).toEqual(["running", "running", "completed"]);
    expect(listLifecycle("failure")).toEqual(["running", "failed"]);
  });

  test("frames of an agent in a tool call have the namespace of the call, and its lifecycle names the call as cause", () => {
    const inner = mapNamed("sub-agent").filter(({ namespace }) => namespace.length > 0);
    expect(new Set(inner.map(({ namespace }) => JSON.stringify(namespace)))).toEqual(new Set(['["tools:call_1"]']));
    const lifecycle = inner.filter(({ channel }) => channel === "lifecycle").map(({ data }) => data);
    expect(lifecycle).toEqual([
      { event: "started", cause: { type: "toolCall", tool_call_id: "call_1" }, graph_name: "researcher" },
      { event: "completed", graph_name: "researcher" },
    ]);
  });

  test("a checkpoint of v2 precedes the state that it belongs to, and names its parent", () => {
    const frames = mapNamed("text").filter(({ channel }) => channel === "checkpoints" || channel === "values");
    expect(frames.map(({ channel }) => channel)).toEqual(["checkpoints", "values", "checkpoints", "values"]);
    expect(frames[0]?.data).toEqual({ id: "000000000001", step: 0, source: "input" });
    expect(frames[2]?.data).toEqual({ id: "000000000002", parent_id: "000000000001", step: 1, source: "loop" });
  });
});
