/** Secrets streamed in chunks: no part of a secret is emitted, and no other text is lost. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  createRedactedStream,
  type PreviousChunk,
  redactChunk,
  redactText,
} from "../../../src/base/redaction/redact-text.ts";
import { createRedactor } from "../../../src/base/redaction/redactor.ts";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  getMessageText,
  inject,
  type Model,
  type ModelDelta,
  type ModelReply,
  memoryStore,
  type RunEvent,
  run,
  START,
  toolNode,
} from "../../../src/index.ts";
import { call, listEvents, listToolAnswers, runToolLoop } from "../../support/tool-loop.ts";

const key = "sk-live-7781-9003-55-abc";
const secrets = { get: () => key };

const text = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 30 });
const someSecrets = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 2, maxLength: 6 }), {
  maxLength: 3,
});

/** Expected output per character: redacted or not. */
function expected(whole: string, all: readonly string[]): string {
  const joins = new Set<number>();
  const covered = new Set<number>();
  for (let at = 0; at < whole.length; at++)
    for (const each of all)
      if (whole.startsWith(each, at))
        for (let place = at; place < at + each.length; place++) {
          covered.add(place);
          if (place > at) joins.add(place);
        }
  return [...whole].map((letter, at) => (!covered.has(at) ? letter : joins.has(at) ? "" : "[secret]")).join("");
}

test("redaction of any chunks of a text gives the redaction of the complete text and buffers only a possible start of a secret", () => {
  fc.assert(
    fc.property(someSecrets, text, fc.array(fc.nat(30), { maxLength: 8 }), (all, whole, cuts) => {
      const places = [...new Set([0, ...cuts.map((cut) => Math.min(cut, whole.length)), whole.length])].sort(
        (one, other) => one - other,
      );
      const stream = createRedactedStream(() => all);
      let observed = "";
      for (const [nth, start] of places.slice(0, -1).entries()) {
        const come = whole.slice(0, places[nth + 1]);
        observed += stream.push(whole.slice(start, places[nth + 1]));
        const isSecretStart = (end: string): boolean => all.some((each) => each.startsWith(end) && each !== end);
        const isOpen = Array.from(come, (_, at) => come.slice(at)).some(isSecretStart);
        if (!isOpen) expect(observed).toBe(redactText(come, all));
      }
      observed += stream.end();
      expect(observed).toBe(expected(whole, all));
      expect(redactText(whole, all)).toBe(observed);
    }),
    { numRuns: 2_000 },
  );
});

test("redaction of independent chunks lets no secret continue across them, and loses no text without a secret", () => {
  const long = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 4, maxLength: 7 }), {
    maxLength: 3,
  });
  const pieces = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 6 }), { maxLength: 8 });
  fc.assert(
    fc.property(long, pieces, (all, given) => {
      let observed = "";
      let before: PreviousChunk | undefined;
      for (const piece of given) {
        const shown = redactChunk(piece, all, before);
        observed += shown.released + shown.text;
        before = shown.previous;
      }
      observed += redactText(before?.pending ?? "", all);
      const whole = given.join("");
      expect(all.some((each) => observed.includes(each))).toBe(false);
      if (!all.some((each) => whole.includes(each))) expect(observed).toBe(whole);
    }),
    { numRuns: 2_000 },
  );
});

test("redaction without secrets returns each chunk unchanged", () => {
  const stream = createRedactor().createUncommonStream();
  expect([stream.push("sk-"), stream.push("x"), stream.end()]).toEqual(["sk-", "x", ""]);
});

/** Creates a model that calls the tool with the secret first and then streams its answer in these chunks. */
function createStreamingModel(deltas: readonly ModelDelta[], reply: ModelReply): Model {
  let asked = 0;
  return {
    id: "test/streams",
    respond: async (_request, { delta }) => {
      if (asked++ === 0) return { content: [call("use")], finish: "calls" };
      for (const each of deltas) delta?.(each);
      return reply;
    },
  };
}

async function createReplyParts(deltas: readonly ModelDelta[], reply: ModelReply) {
  const model = createStreamingModel(deltas, reply);
  const got: unknown[] = [];
  const use = defineTool({
    name: "use",
    description: "Knows the secret.",
    input: z.object({ with: z.string().optional() }),
    inject: { key: inject.secret("KEY") },
    effect: "idempotent",
    run: (args, { injected }) => {
      got.push(args.with, injected.key.reveal().length);
      return "used";
    },
  });
  const graph = defineGraph({ name: "g", state: defineState({ messages: channel.messages() }) })
    .nodes({
      first: async (state, { model: ask }) => ({
        messages: [await ask({ model, request: { messages: state.messages, tools: [] } })],
      }),
      tools: toolNode({ tools: [use] }),
      second: async (state, { model: ask }) => ({
        messages: [await ask({ model, request: { messages: state.messages, tools: [] } })],
      }),
      more: toolNode({ tools: [use] }),
    })
    .edges({ [START]: "first", first: "tools", tools: "second", second: "more", more: END });
  const handle = run(graph, { input: {}, secrets, thread: "t", store: memoryStore() });
  const events: RunEvent[] = [];
  handle.on((event) => events.push(event));
  let read = "";
  const reads = (async () => {
    for await (const part of handle.text()) read += part;
  })();
  const { state } = await handle.result;
  await reads;
  const joined = (kind: string): string =>
    events
      .flatMap((event) => {
        if (event.type === "message.delta") return event.kind === kind ? [event.text] : [];
        return event.type === "message.call_delta" && event.callId === kind ? [event.argsText] : [];
      })
      .join("");
  return { events, state, read, joined, got };
}

describe("secret streamed by a model", () => {
  const pieces = (type: "text" | "reasoning", whole: string): readonly ModelDelta[] =>
    Array.from({ length: Math.ceil(whole.length / 5) }, (_, nth) => ({
      type,
      text: whole.slice(nth * 5, nth * 5 + 5),
    }));
  const argsText = JSON.stringify({ with: `x${key}y` });
  const argsPieces = Array.from(
    argsText,
    (letter): ModelDelta => ({ type: "call", id: "c1", name: "use", argsText: letter }),
  );

  test("a secret streamed by a model is redacted from its text, reasoning and shown arguments, and the tool gets it unredacted [R16]", async () => {
    const said = `The key is ${key}, and that was sk-live`;
    const deltas = [...pieces("reasoning", `So ${key}?`), ...pieces("text", said), ...argsPieces];
    const reply: ModelReply = {
      content: [
        { type: "reasoning", text: `So ${key}?` },
        { type: "text", text: said },
        { type: "call", id: "c1", name: "use", args: { with: `x${key}y` } },
      ],
      finish: "calls",
    };
    const { events, state, read, joined, got } = await createReplyParts(deltas, reply);
    expect(joined("reasoning")).toBe("So [secret]?");
    expect(joined("text")).toBe("The key is [secret], and that was sk-live");
    expect(joined("c1")).toBe('{"with":"x[secret]y"}');
    expect(read.trim()).toBe("The key is [secret], and that was sk-live");
    // The state keeps the arguments; no event has them, not even events with state changes.
    expect(JSON.stringify(state)).toContain("7781-9003-55");
    expect(JSON.stringify(events)).not.toContain("7781-9003-55");
    expect(events.filter(({ type }) => type === "message.retracted")).toEqual([]);
    const message = state.messages.find((each) => each.role === "assistant" && getMessageText(each) !== "");
    expect(message?.role === "assistant" ? message.content.map((block) => Object.values(block)[1]) : []).toEqual([
      "So [secret]?",
      "The key is [secret], and that was sk-live",
      "c1",
    ]);
    // A final call is not streamed as text.
    expect(got).toEqual([undefined, key.length, `x${key}y`, key.length]);
  });

  test("a secret split over several text blocks of a message is redacted, as in their stream [R16]", async () => {
    const text = (part: string) => ({ type: "text", text: part }) as const;
    const parts = ["The key: ", key.slice(0, 4), key.slice(4, 9), `${key.slice(9)}. So`, ` ${key}!`];
    const reply: ModelReply = { content: parts.map(text), finish: "stop" };
    const { events, state, read } = await createReplyParts(parts.map(text), reply);
    const last = state.messages.findLast(({ role }) => role === "assistant");
    expect(last?.content).toEqual([text("The key: "), text("[secret]"), text(". So"), text(" [secret]!")]);
    expect(read.trim()).toBe("The key: [secret]. So [secret]!");
    expect(events.filter(({ type }) => type === "message.retracted")).toEqual([]);
  });

  test("a secret split over several reasoning blocks is redacted, and signed blocks that contain a part of it are removed [R16]", async () => {
    const createReasoning = (part: string) => ({ type: "reasoning", text: part }) as const;
    const signed = (part: string) => ({ ...createReasoning(part), provider: { acme: { signature: "x" } } });
    const answer = { type: "text", text: "Done." } as const;
    const listThoughts = async (content: ModelReply["content"]) => {
      const { state } = await createReplyParts([], { content: [...content, answer], finish: "stop" });
      return state.messages.findLast(({ role }) => role === "assistant")?.content;
    };
    const [begin, end] = [`It is ${key.slice(0, 6)}`, `${key.slice(6)}, I think`];
    expect(await listThoughts([createReasoning(begin), createReasoning(end)])).toEqual([
      createReasoning("It is [secret]"),
      createReasoning(", I think"),
      answer,
    ]);
    expect(await listThoughts([signed("So"), signed(begin), signed(end)])).toEqual([signed("So"), answer]);
  });

  test("a signed reasoning block that contains a secret is removed", async () => {
    const { state } = await createReplyParts([], {
      content: [
        { type: "reasoning", text: `So ${key}?`, provider: { test: { signature: "s" } } },
        { type: "text", text: "Done." },
      ],
      finish: "stop",
    });
    const last = state.messages.findLast(({ role }) => role === "assistant");
    expect(last?.content).toEqual([{ type: "text", text: "Done." }]);
  });
});

describe("secret streamed by a tool", () => {
  const runSayTool = (
    body: (runtime: {
      readonly update: (text: string, details?: unknown) => void;
      readonly progress: (text: string) => void;
      readonly emit: (name: string, payload: string) => void;
    }) => void,
  ) =>
    runToolLoop({
      tools: [
        defineTool({
          name: "say",
          description: "Says it.",
          input: z.object({}),
          inject: { key: inject.secret("KEY") },
          effect: "idempotent",
          run: (_args, { update, progress, emit }) => {
            body({ update: (content, details) => update?.({ content, details }), progress, emit });
            return "x";
          },
        }),
      ],
      secrets,
      turns: [[call("say")], ["ok"]],
    });

  test("a secret at the end of a partial result, or split over several partial results, is redacted [R16]", async () => {
    const done = await runSayTool(({ update }) => {
      update("out: sk-live-77", { last: ["sk-live-77"] });
      update(`out: ${key}\nnext`);
      update("key sk-");
      update("live-7781-9003-55");
      update("-abc done");
    });
    expect(listEvents(done, "tool.update").map(({ partial }) => partial.content)).toEqual([
      "out: ",
      "out: [secret]\nnext",
      "key sk-",
      "",
      "[secret] done",
    ]);
    expect(JSON.stringify(done.events)).not.toContain("7781-9003-55");
    expect(JSON.stringify(done.events)).not.toContain("sk-live-77");
  });

  test("a secret split over several text blocks of a partial or final tool result is redacted [R16]", async () => {
    const text = (part: string) => ({ type: "text", text: part }) as const;
    const image = { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" } as const;
    const content = [text(`a ${key.slice(0, 5)}`), image, text(key.slice(5)), text("b")];
    const leak = defineTool({
      name: "say",
      description: "Says it.",
      input: z.object({}),
      inject: { key: inject.secret("KEY") },
      run: (_args, { update }) => {
        update?.({ content: [text(`a ${key.slice(0, 5)}`), image, text(key.slice(5, -1))] });
        update?.({ content });
        return { content };
      },
    });
    const done = await runToolLoop({ tools: [leak], secrets, turns: [[call("say")], ["ok"]] });
    const shown = [text("a [secret]"), image, text("b")];
    expect(listEvents(done, "tool.update").map(({ partial }) => partial.content)).toEqual([
      [text("a "), image, text("")],
      shown,
    ]);
    expect(listToolAnswers(done).map((answer) => answer.content)).toEqual([shown]);
  });

  test("a secret streamed by custom events of a tool is redacted, separately per event name [R16]", async () => {
    const done = await runSayTool(({ emit }) => {
      emit("out", "a sk-live-");
      emit("err", "7781-9003-55-abc");
      emit("out", "7781-9003-55-abc!");
      emit("out", "end sk-live");
    });
    expect(listEvents(done, "custom").map(({ name, payload }) => [name, payload])).toEqual([
      ["out", "a "],
      ["err", "7781-9003-55-abc"],
      ["out", "[secret]!"],
      ["out", "end "],
      ["out", "sk-live"],
    ]);
  });

  test("a secret in progress lines is redacted, and a line that only starts like a secret is emitted complete [R16]", async () => {
    const done = await runSayTool(({ progress }) => {
      progress("using sk-live-");
      progress("7781-9003-55-abc now");
      progress("server sk-live");
      progress("next");
      progress("last sk-live");
    });
    expect(listEvents(done, "tool.progress").map((event) => event.text)).toEqual([
      "using ",
      "[secret] now",
      "server ",
      "sk-live",
      "next",
      "last ",
      "sk-live",
    ]);
  });
});

test("entries whose keys are secrets are all kept, with numbered names when the redacted names collide", () => {
  const mask = createRedactor();
  for (const each of ["first-key-1", "other-key-2", "third-key-33"]) mask.addSecret(each);
  const entries = [
    ["first-key-1", 1],
    ["[secret]", 2],
    ["other-key-2", 3],
    ["id other-key-2", 4],
    ["id third-key-33", 5],
  ] as const;
  const named = { "[secret] (2)": 1, "[secret]": 2, "[secret] (3)": 3, "id [secret]": 4, "id [secret] (2)": 5 };
  expect(mask.redact(Object.fromEntries(entries))).toEqual(named);
  expect(mask.redact(new Map<string, number>(entries))).toEqual(new Map(Object.entries(named)));
  expect(mask.redact(new Set(["first-key-1", "other-key-2"]))).toEqual(new Set(["[secret]", "[secret] (2)"]));
  expect(mask.redact(named)).toBe(named);
});
