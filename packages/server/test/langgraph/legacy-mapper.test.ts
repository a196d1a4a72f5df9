/** The mapper of the legacy stream: golden files from recorded tapes, and the rules of its events. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { listTapeRuns, readGolden, readTape } from "../support/golden-tapes.ts";
import { createTapeMemory, formatTape, mapTape, type NumberedEvent, selectRun } from "../support/map-tape.ts";
import { tapeNames } from "../support/tape-graphs.ts";

function mapRun(name: string): readonly NumberedEvent[] {
  const [first = ""] = listTapeRuns(readTape(name, "legacy"));
  return mapTape(readTape(name, "legacy").events, createTapeMemory(first));
}

const chunk = z.tuple([z.looseObject({ id: z.string(), content: z.unknown() }), z.looseObject({})]);

/** Text of the chunks of each message id. */
function joinChunks(wire: readonly NumberedEvent[]): Readonly<Record<string, string>> {
  const texts: Record<string, string> = {};
  for (const { mode, data } of wire) {
    if (mode !== "messages-tuple") continue;
    const [{ id, content }] = chunk.parse(data);
    if (typeof content === "string") texts[id] = (texts[id] ?? "") + content;
  }
  return texts;
}

describe("golden files", () => {
  test.each(tapeNames)("the tape %s gives the wire events of its golden file [V4, V143]", (name) => {
    const tape = readTape(name, "legacy");
    const lines = listTapeRuns(tape).map((run) =>
      formatTape(mapTape(selectRun(tape.events, run), createTapeMemory(run, tape.graph))),
    );
    expect(lines.join("")).toBe(readGolden(name, "legacy"));
  });

  test("the same tape gives the same wire events a second time: the mapper keeps nothing but its memory [V4]", () => {
    for (const name of tapeNames) expect(formatTape(mapRun(name))).toBe(formatTape(mapRun(name)));
  });
});

describe("events of a run", () => {
  test("the stream begins with metadata and ends with the status of the run [V35]", () => {
    const first = mapRun("text")[0];
    expect(first).toMatchObject({ event: "metadata", data: { attempt: 1, thread_id: "t1" } });
    const ends = tapeNames.map((name) => [
      name,
      mapRun(name)
        .filter(({ isEnd }) => isEnd === true)
        .map(({ event, data }) => [event, data]),
    ]);
    const statuses = Object.fromEntries(
      ends.map(([name, list]) => [name, JSON.stringify(list).match(/(?<="status":")\w+|"error",/g)]),
    );
    expect(statuses).toMatchObject({
      text: ["success"],
      waiting: ["interrupted", "success"],
      cancel: ["interrupted"],
      failure: [`"error",`],
    });
  });

  test("text that was retracted is taken back by the state, and the next attempt has another message id [V32]", () => {
    const wire = mapRun("retraction");
    expect(joinChunks(wire)).toEqual({ "0:0:model": "one two three", "0:0:model~2": "The right answer." });
    const streams = wire
      .filter(({ mode }) => mode === "messages-tuple" || mode === "values")
      .map(({ event, data }) => (event === "values" ? "values" : chunk.parse(data)[0].id));
    expect(streams.slice(streams.indexOf("0:0:model"), streams.indexOf("0:0:model~2") + 1)).toEqual([
      "0:0:model",
      "0:0:model",
      "0:0:model",
      "values",
      "0:0:model~2",
    ]);
  });

  test("after a crash the state comes first, and the new answer has the number of the attempt in its message id [V32]", () => {
    const wire = mapRun("crash");
    expect(joinChunks(wire)).toEqual({ "0:0:model": "Half an answer", "0:0:model~2": "The whole answer." });
    const second = wire.slice(wire.findLastIndex(({ event }) => event === "metadata"));
    expect(second.slice(0, 2).map(({ event }) => event)).toEqual(["metadata", "values"]);
  });

  test("a call is shown as running when its body begins: a call that waits for approval or was denied never is [V33]", () => {
    const tools = mapRun("waiting")
      .filter(({ event }) => event === "tools")
      .map(({ seq, data }) => [seq, data]);
    expect(tools).toMatchObject([
      [5, { event: "on_tool_start", toolCallId: "call_1" }],
      [5, { event: "on_tool_end", toolCallId: "call_1", output: "paid 1" }],
    ]);
  });

  test("a run that waits sends the interrupts with its values and its updates, and then its end [V45, V46]", () => {
    const wire = mapRun("waiting").filter(({ seq }) => seq === 4);
    expect(wire.map(({ event }) => event)).toEqual(["values", "updates", "end"]);
    const interrupt = {
      __interrupt__: [{ id: "1:0:call_1", value: { action_requests: [{ name: "pay" }, { name: "pay" }] } }],
    };
    expect(wire[0]?.data).toMatchObject(interrupt);
    expect(wire[1]?.data).toMatchObject(interrupt);
    expect(wire[2]?.data).toMatchObject({ status: "interrupted" });
  });

  test("a tool call comes as a chunk with its name and no arguments, and then as arguments without a name", () => {
    const calls = mapRun("parallel-tools").flatMap(({ mode, data }) =>
      mode === "messages-tuple" ? [chunk.parse(data)[0]["tool_call_chunks"]] : [],
    );
    expect(calls.flat().filter((call) => call !== undefined)).toEqual([
      { index: 0, id: "call_1", name: "look", args: "", type: "tool_call_chunk" },
      { index: 0, args: '{"word":"tea"}', type: "tool_call_chunk" },
      { index: 1, id: "call_2", name: "look", args: "", type: "tool_call_chunk" },
      { index: 1, args: '{"word":"milk"}', type: "tool_call_chunk" },
    ]);
  });

  test("events of a sub-agent carry the path of its call as a suffix, and its state is its own", () => {
    const inner = mapRun("sub-agent").filter(({ namespace }) => namespace !== "");
    expect(new Set(inner.map(({ namespace }) => namespace))).toEqual(new Set(["|researcher:1:0:0"]));
    const values = inner.findLast(({ event }) => event === "values");
    expect(values?.data).toMatchObject({ messages: [{ type: "human" }, { type: "ai", content: "ants: found" }] });
  });

  test("numbers of wire events count up after each durable event, and never go backwards [V42]", () => {
    for (const name of tapeNames) {
      const places = mapRun(name).map(({ seq, n }) => seq * 10_000 + n);
      expect(places).toEqual([...new Set(places)].sort((a, b) => a - b));
    }
  });
});
