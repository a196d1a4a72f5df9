import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Message, type ModelDelta, type ModelRequest, StatewrightError } from "@statewright/core";
import { call, failWith, recordedModel, say, scriptedModel } from "@statewright/testing";
import { afterAll, describe, expect, test } from "vitest";

const home = mkdtempSync(join(tmpdir(), "statewright-recorded-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));
let files = 0;
const createTapePath = (): string => join(home, `${++files}`, "tape.json");

const quiet = { signal: new AbortController().signal };

function user(text: string, id = "u1"): Message {
  return { role: "user", id, content: [{ type: "text", text }] };
}

function request(text: string, more: Partial<ModelRequest> = {}): ModelRequest {
  return { messages: [user(text)], tools: [], ...more };
}

/** A conversation with an answered call, with the ids of one run. */
function answered(ids: string): ModelRequest {
  return {
    tools: [],
    messages: [
      user("Oslo?", `${ids}-u`),
      {
        role: "assistant",
        id: `${ids}-a`,
        finish: "calls",
        content: [{ type: "call", id: `${ids}-c`, name: "weather", args: { city: "Oslo" } }],
        provider: { made: { requestId: ids } },
      },
      {
        role: "tool",
        id: `${ids}-t`,
        callId: `${ids}-c`,
        name: "weather",
        content: [{ type: "text", text: "Rain" }],
        isError: false,
      },
    ],
  };
}

describe("recordedModel", () => {
  test("a recorded model replays replies with their streaming and makes no model request", async () => {
    const path = createTapePath();
    const model = scriptedModel([[say(["It ", "is "]), call("weather", { city: "Oslo" })], say("Rain.")], {
      id: "made",
    });
    const recording = recordedModel(path, { model, mode: "record" });
    const first = await recording.respond(request("Oslo?"), quiet);
    const second = await recording.respond(request("And now?"), quiet);
    const deltas: ModelDelta[] = [];
    const replaying = recordedModel(path);
    expect(replaying.id).toBe("made");
    const delta = (each: ModelDelta): void => void deltas.push(each);
    expect(await replaying.respond(request("Oslo?"), { ...quiet, delta })).toEqual(first);
    expect(await replaying.respond(request("And now?"), quiet)).toEqual(second);
    expect(deltas).toEqual([
      { type: "text", text: "It " },
      { type: "text", text: "is " },
      { type: "call", id: "call_1", name: "weather", argsText: '{"city":"Oslo"}' },
    ]);
    expect(model.requests).toHaveLength(2);
    expect(replaying.requests).toHaveLength(2);
  });

  test("a recorded model matches requests by content, whatever their ids, headers and provider metadata", async () => {
    const path = createTapePath();
    const recording = recordedModel(path, { model: scriptedModel([say("Wet.")]), mode: "record" });
    await recording.respond(answered("one"), quiet);
    const other = { ...answered("two"), headers: { "x-trace": "7" } };
    expect(await recordedModel(path).respond(other, quiet)).toMatchObject({ content: [{ text: "Wet." }] });
  });

  test("a recorded model matches requests after the normalise function of the test", async () => {
    const path = createTapePath();
    const normalise = (asked: ModelRequest): ModelRequest => ({ ...asked, instructions: "Today" });
    const model = scriptedModel([say("Monday")]);
    const recording = recordedModel(path, { model, mode: "record", normalise });
    await recording.respond(request("Day?", { instructions: "Today is Monday" }), quiet);
    const again = request("Day?", { instructions: "Today is Friday" });
    expect(await recordedModel(path, { normalise }).respond(again, quiet)).toMatchObject({ finish: "stop" });
    await expect(recordedModel(path).respond(again, quiet)).rejects.toMatchObject({ code: "model_failed" });
  });

  test("a recorded model refuses an unknown request and shows the difference to the nearest one", async () => {
    const path = createTapePath();
    const model = scriptedModel([say("Wet."), say("Dry.")]);
    const recording = recordedModel(path, { model, mode: "record" });
    await recording.respond(request("Is it raining in Oslo today?", { temperature: 0 }), quiet);
    await recording.respond(answered("one"), quiet);
    const failing = recordedModel(path).respond(request("Is it raining in Rome today?", { temperature: 1 }), quiet);
    await expect(failing).rejects.toMatchObject({
      code: "model_failed",
      details: {
        retryable: false,
        differences: [
          'messages.0.content.0.text: recorded "Is it raining in Oslo today?", asked "Is it raining in Rome today?"',
          "temperature: recorded 0, asked 1",
        ],
      },
    });
    await expect(failing).rejects.toThrow(
      /a request without an answer in tape\.json: the nearest, number 1, differs in messages\.0/,
    );
  });

  test("a recorded model replays repeated requests in recorded order, then repeats the last reply", async () => {
    const path = createTapePath();
    const answers = ["One", "Two"].map((text) => scriptedModel([say(text)]));
    const asked = request("Again?");
    const model = { id: "made", respond: (...at: Parameters<(typeof answers)[0]["respond"]>) => next().respond(...at) };
    const next = () => answers.shift() ?? scriptedModel([]);
    const recording = recordedModel(path, { model, mode: "record" });
    await recording.respond(asked, quiet);
    await recording.respond(asked, quiet);
    const replaying = recordedModel(path);
    const said: unknown[] = [];
    for (let nth = 0; nth < 3; nth++) said.push((await replaying.respond(asked, quiet)).content);
    expect(said).toMatchObject([[{ text: "One" }], [{ text: "Two" }], [{ text: "Two" }]]);
  });

  test("a recorded model in mode auto adds missing replies once, and mode record starts over", async () => {
    const path = createTapePath();
    const first = scriptedModel([say("One")]);
    await recordedModel(path, { model: first, mode: "auto" }).respond(request("1"), quiet);
    const second = scriptedModel([say("Two")]);
    const growing = recordedModel(path, { model: second, mode: "auto" });
    await growing.respond(request("1"), quiet);
    await growing.respond(request("2"), quiet);
    expect(second.requests).toHaveLength(1);
    expect(await recordedModel(path).respond(request("1"), quiet)).toMatchObject({ content: [{ text: "One" }] });
    const anew = recordedModel(path, { model: scriptedModel([say("Three")]), mode: "record" });
    await anew.respond(request("3"), quiet);
    await expect(recordedModel(path).respond(request("1"), quiet)).rejects.toThrow("without an answer");
  });

  test("a recorded model passes failures through without recording them and records the next reply", async () => {
    const path = createTapePath();
    const busy = new StatewrightError("model_failed", { what: "busy", next: "Wait", details: { retryable: true } });
    const recording = recordedModel(path, { model: scriptedModel([failWith(busy), say("Hi")]), mode: "record" });
    await expect(recording.respond(request("Hello"), quiet)).rejects.toBe(busy);
    expect(existsSync(path)).toBe(false);
    await recording.respond(request("Hello"), quiet);
    expect(await recordedModel(path).respond(request("Hello"), quiet)).toMatchObject({ content: [{ text: "Hi" }] });
  });

  test("a recorded model writes no key, header or named secret, and a replay with another key matches", async () => {
    const path = createTapePath();
    const createRequest = (key: string): ModelRequest =>
      request(`My key is ${key} and my card is 4711-0815.`, {
        headers: { authorization: `Bearer ${key}` },
        instructions: "Code word: swordfish",
        providerOptions: { made: { apiKey: "plain words", region: "eu" } },
      });
    const model = scriptedModel([
      [say(["I keep s", "k-abcdef", "ghijklmnop."]), call("pay", { password: "hunter22", cents: 5 })],
    ]);
    const options = { redact: ["swordfish", /\d{4}-\d{4}/] };
    await recordedModel(path, { model, mode: "record", ...options }).respond(
      createRequest("sk-live_0123456789abcd"),
      quiet,
    );
    const text = readFileSync(path, "utf8");
    for (const secret of ["sk-", "Bearer", "authorization", "swordfish", "4711", "plain words", "hunter22"])
      expect(text, secret).not.toContain(secret);
    expect(text).toContain('"region": "eu"');
    const replayed = await recordedModel(path, options).respond(createRequest("sk-live_zzzzzzzzzzzzzz"), quiet);
    expect(replayed.content).toMatchObject([
      { text: "I keep [redacted]." },
      { args: { password: "[redacted]", cents: 5 } },
    ]);
  });

  test("a recorded model file is complete at any moment, with no temporary file left", async () => {
    const path = createTapePath();
    const model = scriptedModel((asked: ModelRequest) => say(`said ${JSON.stringify(asked.messages).length}`));
    const recording = recordedModel(path, { model, mode: "auto" });
    const sizes: number[] = [];
    await Promise.all(
      ["a", "bb", "ccc"].map(async (text) => {
        await recording.respond(request(text), quiet);
        sizes.push(JSON.parse(readFileSync(path, "utf8")).entries.length);
      }),
    );
    expect(sizes).toHaveLength(3);
    expect(readdirSync(join(path, ".."))).toEqual(["tape.json"]);
  });

  test("a recorded model refuses a transcript that a provider would refuse [T56]", async () => {
    const path = createTapePath();
    await recordedModel(path, { model: scriptedModel([say("Hi")]), mode: "auto" }).respond(request("Hi"), quiet);
    const [asked, called] = answered("one").messages;
    const open = { tools: [], messages: [asked, called].flatMap((each) => each ?? []) };
    await expect(recordedModel(path).respond(open, quiet)).rejects.toMatchObject({ code: "invalid_transcript" });
  });

  test("a recorded model names the fix for a missing file, recording or model", () => {
    const code = "invalid_option";
    expect(() => recordedModel(join(home, "none.json"))).toThrow(expect.objectContaining({ code }));
    expect(() => recordedModel(createTapePath(), { mode: "auto" })).toThrow(
      /`model` must be a model for the mode "auto", got undefined/,
    );
    const path = join(home, "bad.json");
    for (const text of ["{", "[]", '{"form":9}', '{"form":1,"model":"a","entries":[1]}']) {
      writeFileSync(path, text);
      expect(() => recordedModel(path), text).toThrow(expect.objectContaining({ code }));
    }
    expect(() => recordedModel(path, { redact: ["abc"] })).toThrow(
      /texts of at least 4 characters, or regular expressions, got a shorter text/,
    );
  });
});
