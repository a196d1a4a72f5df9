import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { errorCodes } from "../../../src/adapter.ts";
import { createRedactor } from "../../../src/base/redaction/redactor.ts";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  inject,
  isStatewrightError,
  memoryStore,
  type OpenLongTerm,
  run,
  type SecretSource,
  START,
  StatewrightError,
  ToolError,
  toolNode,
} from "../../../src/index.ts";
import { toolErrorKinds } from "../../../src/tool/definition/tool-error.ts";
import {
  call,
  createToolLoop,
  type DeskTool,
  getAnswerText,
  type Loop,
  listEvents,
  listResults,
  listToolAnswers,
  runToolLoop,
} from "../../support/tool-loop.ts";

/** Secrets with characters that JSON and URLs escape. */
const key = 'SENTINEL-"7"/ü key';
const vault: SecretSource = { get: (name) => (name === "KEY" ? key : undefined) };

function leaking(
  body: (
    text: string,
    runtime: {
      readonly update?: ((partial: never) => void) | undefined;
      readonly progress: (text: string) => void;
      readonly emit: (name: string, payload: string) => void;
      readonly longTerm: OpenLongTerm;
    },
  ) => unknown,
  more: object = {},
): DeskTool {
  return defineTool({
    name: "leak",
    description: "Careless with what it is given.",
    input: z.object({}),
    inject: { key: inject.secret("KEY") },
    effect: "idempotent",
    ...more,
    run: (_args, runtime) => body(runtime.injected.key.reveal(), runtime),
  });
}

function collectOutput(loop: Pick<Loop, "wires" | "saved" | "events" | "world">): string {
  const { wires, events, world } = loop;
  const deep = { depth: 30, maxStringLength: null, maxArrayLength: null };
  return [...wires, loop.saved(), JSON.stringify(events), inspect(events, deep), inspect(world.lines, deep)].join("\n");
}

describe("secrets used by a run", () => {
  const ways: Readonly<Record<string, Parameters<typeof leaking>[0]>> = {
    "in an error": (text) => Promise.reject(new Error(`the bank refused the key ${text}`)),
    "in a cause": (text) => Promise.reject(new Error("refused", { cause: new Error(`key=${text}`) })),
    "in a tool error and its details": (text) =>
      Promise.reject(
        new ToolError("failed", `bad key ${text}`, { userMessage: `your key ${text}`, details: { [text]: [text] } }),
      ),
    "in a thrown value that is not an error": (text) => Promise.reject(text),
    "in its text": (text) => `used ${text}`,
    "in its content": (text) => ({
      content: [{ type: "text", text }],
      value: { text },
      details: new Map([[text, text]]),
    }),
    "in data": (text) => ({ headers: { authorization: `Bearer ${text}` } }),
    "in JSON within a text": (text) => JSON.stringify({ text }),
    "in an address": (text) => `https://bank.example/?key=${encodeURIComponent(text)}`,
    "in a change of the state": (text) => ({ content: "x", command: { update: { notes: [text] } } }),
    "in an update": (text, { update }) => {
      update?.({ content: `half ${text}`, details: [text] } as never);
      return "x";
    },
    "in a line of progress and an event": (text, { progress, emit }) => {
      progress(`using ${text}`);
      emit("used", text);
      return "x";
    },
  };

  test("secrets of a run are redacted from every tool output before it is saved or emitted [R16]", async () => {
    for (const [way, body] of Object.entries(ways)) {
      const done = await runToolLoop({ tools: [leaking(body)], secrets: vault, turns: [[call("leak")], ["ok"]] });
      expect([way, done.result.status]).toEqual([way, "done"]);
      expect(collectOutput(done) + inspect(done.result, { depth: 20 }), way).not.toContain("SENTINEL");
    }
    const observed = await runToolLoop({
      tools: [leaking(ways["in an error"] as never)],
      secrets: vault,
      turns: [[call("leak")], ["ok"]],
    });
    expect(listToolAnswers(observed).map(getAnswerText)).toEqual(["the bank refused the key [secret]"]);
  });

  test("secrets of a run are masked in artifacts with binary bodies, and the length of the body stays [FX72]", async () => {
    const store = memoryStore();
    let size = 0;
    const keeps = leaking((text) => {
      const body = new Uint8Array([0, 255, ...new TextEncoder().encode(text), 200, 0]);
      size = body.length;
      return { content: "kept", artifacts: [{ name: "a.bin", mimeType: "application/octet-stream", body }] };
    });
    const done = await runToolLoop({ tools: [keeps], store, secrets: vault, turns: [[call("leak")], ["ok"]] });
    expect(done.result.status).toBe("done");
    const [row] = await store.artifacts.list("t");
    const body = await store.artifacts.read("t", row?.key ?? "");
    expect(body?.length).toBe(size);
    expect(Buffer.from(body ?? []).toString("latin1")).not.toContain("SENTINEL");
    expect([body?.[1], body?.at(-2)]).toEqual([255, 200]);
  });

  test("secrets of a run are redacted from values in the long-term store [FX72]", async () => {
    const store = memoryStore();
    const keeps = leaking(async (text, { longTerm }) => {
      await longTerm("notes").put("key", { text: `key ${text}` });
      return "kept";
    });
    const done = await runToolLoop({ tools: [keeps], store, secrets: vault, turns: [[call("leak")], ["ok"]] });
    expect(done.result.status).toBe("done");
    const row = await store.longTerm.get({ namespace: "notes/", key: "key" }, Date.now());
    expect(row?.value).toContain("key [secret]");
    expect(JSON.stringify(row)).not.toContain("SENTINEL");
  });

  test("secrets of a run are redacted from artifacts, also when their text was given as bytes", async () => {
    const store = memoryStore();
    const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
    const keeps = leaking((text) => ({
      content: "kept",
      artifacts: [
        { name: "text.txt", mimeType: "text/plain", body: `key=${text}` },
        { name: "bytes.txt", mimeType: "text/plain", body: bytes(`bytes ${text}`) },
        { name: "bytes.json", mimeType: "application/json", body: bytes(JSON.stringify({ text })) },
      ],
    }));
    const done = await runToolLoop({ tools: [keeps], store, secrets: vault, turns: [[call("leak")], ["ok"]] });
    expect(done.result.status).toBe("done");
    const rows = await store.artifacts.list("t");
    const bodies = await Promise.all(rows.map(({ key: body }) => store.artifacts.read("t", body)));
    expect(bodies.map((body) => new TextDecoder().decode(body))).toEqual([
      "key=[secret]",
      "bytes [secret]",
      '{"text":"[secret]"}',
    ]);
  });

  test("secrets of a run appear in no error that a run stores, emits or rejects with, and in no cause [E72]", async () => {
    const fails: Readonly<Record<string, DeskTool>> = {
      "a tool that fails the run": leaking((text) => Promise.reject(new Error(`no: ${text}`)), { onError: "fail" }),
      "an attempt that is tried again": leaking((text) => Promise.reject(ToolError.unavailable(text)), {
        retry: { attempts: 2, initialMs: 0 },
        onError: "fail",
      }),
    };
    for (const [what, tool] of Object.entries(fails)) {
      const loop = createToolLoop({ tools: [tool], secrets: vault, turns: [[call("leak")], ["ok"]] });
      const failure = loop.start().result.catch((thrown: unknown) => thrown);
      await loop.world.advance(10);
      const error = await failure;
      expect([what, isStatewrightError(error, "tool_failed")]).toEqual([what, true]);
      expect(collectOutput(loop) + inspect(error, { depth: 20 }) + JSON.stringify(error), what).not.toContain(
        "SENTINEL",
      );
    }
    // A later node with the secret from another source: its failure is in the run row and its events.
    const Chat = defineState({ messages: channel.messages() });
    const graph = defineGraph({ name: "g", state: Chat })
      .nodes({
        tools: toolNode({
          tools: [
            defineTool({
              name: "leak",
              description: "Uses it.",
              input: z.object({}),
              inject: { key: inject.secret("KEY") },
              run: () => "x",
            }),
          ],
        }),
        after: () => {
          throw new Error(`the key was ${key}`, { cause: { key } });
        },
      })
      .edges({ [START]: "tools", tools: "after", after: END });
    const store = memoryStore();
    const asking = { role: "assistant", id: "a1", content: [call("leak")], finish: "calls" } as const;
    const handle = run(graph, { store, thread: "t", secrets: vault, input: { messages: [asking] } });
    const events: unknown[] = [];
    handle.on((event) => events.push(event));
    const error = await handle.result.catch((thrown: unknown) => thrown);
    expect(isStatewrightError(error, "node_failed")).toBe(true);
    expect(String(error)).toContain("the key was [secret]");
    const [row] = await store.runs({ thread: "t" });
    expect(inspect([error, events, row], { depth: 30 })).not.toContain("SENTINEL");
    expect(row?.error?.message).toContain("[secret]");
  });

  test("every error message ends with a fix and the address of its page [E72]", () => {
    for (const code of errorCodes) {
      const error = new StatewrightError(code, { what: "it happened", next: "Do this next", place: { node: "n" } });
      expect(error.message).toBe(
        `${code}: it happened (node "n"). Do this next. See node_modules/statewright/docs/errors.md#${code}.`,
      );
      expect(error.docs).toBe(`node_modules/statewright/docs/errors.md#${code}`);
    }
  });

  test("redaction finds a secret within another, leaves other text unchanged and does not treat a syllable as a secret", () => {
    const mask = createRedactor();
    const value = Object.freeze({ list: ["a word"], date: new Date(0), n: 1 });
    expect(mask.redact(value)).toBe(value);
    mask.addSecret("word");
    mask.addSecret("a word of many");
    mask.addSecret("a");
    mask.addSecret("");
    expect(mask.redact("a word of many words and a word")).toBe("[secret] [secret]s and a [secret]");
    const hidden = mask.redact(value);
    expect(hidden).toEqual({ list: ["a [secret]"], date: new Date(0), n: 1 });
    expect(Object.isFrozen(hidden)).toBe(true);
    const other = { date: value.date };
    expect(mask.redact(other)).toBe(other);
    const round: Record<string, unknown> = { text: "a word" };
    Object.assign(round, { one: round, two: round });
    expect(() => mask.redact(round)).not.toThrow();
    mask.addSecret("\ud800 half");
    expect(mask.redact("\ud800 half")).toBe("[secret]");
  });

  test("redaction finds secrets in JSON nested in JSON text, and in form data", () => {
    const pass = 'PASS "7"\nof (many) lines!';
    const mask = createRedactor();
    mask.addSecret(pass);
    const body = JSON.stringify({ body: JSON.stringify({ pass }) });
    const address = new URL("https://x.test/");
    address.searchParams.set("pass", pass);
    expect(JSON.parse(JSON.parse(mask.redact(body)).body)).toEqual({ pass: "[secret]" });
    expect(mask.redact(address.href)).toBe("https://x.test/?pass=[secret]");
  });

  test("redaction leaves redacted text unchanged, also for a secret that is part of the redaction mark", () => {
    const mask = createRedactor();
    for (const each of ["secret", "the secret of 7"]) mask.addSecret(each);
    const once = mask.redact("a secret, the secret of 7");
    expect([once, mask.redact(once)]).toEqual(["a [secret], [secret]", once]);
  });

  test("secrets equal to words of the result format are redacted from texts, and keys, kinds and media types stay valid", async () => {
    const image = { type: "image", mimeType: "image/png", data: "dGV4dAtruetexttypeimagedata" } as const;
    const note = { role: "user", id: "n1", content: [{ type: "text", text: "a text of type json, true" }] } as const;
    const formats = [
      "text",
      "type",
      "true",
      "json",
      "image",
      "content",
      "value",
      "data",
      "user",
      "role",
      "update",
      "notes",
    ];
    for (const word of [...formats, "messages", "kind", "denied", "repair", "disposition", "isError", "error"]) {
      const says = leaking((text) => ({
        content: [
          { type: "text", text: `the key is ${text}` },
          image,
          { type: "json", value: { type: [`a ${text}`] } },
        ],
        value: { text, type: 1, true: true },
        command: { update: { messages: [note] } },
      }));
      const refuses = defineTool({
        name: "refuse",
        description: "Refuses.",
        input: z.object({}),
        run: () => Promise.reject(new ToolError("denied", `no ${word}`)),
      });
      const done = await runToolLoop({
        tools: [says, refuses],
        strategy: "sequential",
        secrets: { get: () => word },
        turns: [[call("leak", {}, "c1"), call("refuse", {}, "c2")], ["ok"]],
      });
      const [given, refused] = listResults(done);
      expect([word, done.result.status, given?.isError]).toEqual([word, "done", false]);
      expect(given?.content, word).toEqual([
        { type: "text", text: "the key is [secret]" },
        image,
        { type: "json", value: { type: ["a [secret]"] } },
      ]);
      expect(given?.value, word).toEqual({ text: "[secret]", type: 1, true: true });
      expect(refused?.error, word).toEqual({ kind: "denied", disposition: "repair", message: "no [secret]" });
      expect(refused?.content, word).toEqual([{ type: "text", text: "no [secret]" }]);
      const savedMessage = done.result.state.messages.find(({ id }) => id === "n1");
      const text = "a text of type json, true".replaceAll(word, "[secret]");
      expect([savedMessage?.role, savedMessage?.content], word).toEqual(["user", [{ type: "text", text }]]);
    }
  });

  test("secrets of one to three characters are not redacted, and longer secrets are found in any text", async () => {
    for (const [pin, observed] of [
      ["1", "1"],
      ["abc", "abc"],
      ["1234", "[secret]"],
    ] as const) {
      const done = await runToolLoop({
        tools: [leaking((text) => ({ content: `pin ${text}`, value: { n: 12341, abc: 1 } }))],
        secrets: { get: () => pin },
        turns: [[call("leak")], ["ok"]],
      });
      expect(listToolAnswers(done).map(getAnswerText)).toEqual([`pin ${observed}`]);
      expect(listResults(done)[0]?.value).toEqual({ n: 12341, abc: 1 });
    }
  });

  test("the redaction vocabulary contains every kind, disposition and error code", () => {
    const mask = createRedactor();
    const records = [...toolErrorKinds.map((kind) => ({ kind })), ...errorCodes.map((code) => ({ code }))];
    for (const record of records) for (const word of Object.values(record)) if (word.length < 17) mask.addSecret(word);
    for (const record of records) expect(mask.redact(record)).toBe(record);
  });

  test("a run that uses no secrets scans no text", async () => {
    const done = await runToolLoop({ tools: [leaking(() => "x")], secrets: vault, turns: [["no call"]] });
    expect(done.result.status).toBe("done");
    expect(listEvents(done, "tool.started")).toEqual([]);
  });
});
