import { confirmTools, redactSecrets } from "@statewright/agent/middleware";
import { defineTool, memoryStore } from "@statewright/core";
import { call, say } from "@statewright/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod";
import { createDesk, listAnswers, listQuestions } from "../support/desk.ts";

const key = "sk-abcdefghijklmnop0123";
const word = "hunter2-correct-horse";
const hidden = [key, word];
const containsSecret = (value: unknown): boolean => hidden.some((each) => JSON.stringify(value).includes(each));

const leak = defineTool({
  name: "leak",
  description: "Tells everything.",
  input: z.object({ to: z.string() }),
  safety: { access: "destructive" },
  run: ({ to }, { update, progress }) => {
    progress(`with ${key}`);
    update?.({ content: `half of ${key}`, details: { [word]: [key] } });
    if (to === "nobody") throw new Error(`cannot use ${key}`);
    return {
      content: [
        { type: "text", text: `key ${key}, ok` },
        { type: "json", value: { word } },
      ],
      value: { key },
      details: { word },
    };
  },
});

test("secrets are redacted in results, errors, partial results, progress, and arguments in events and interrupts [S1.86, T26]", async () => {
  const store = memoryStore();
  const agent = createDesk({
    tools: [leak],
    store,
    middleware: [redactSecrets({ texts: [word] }), confirmTools()],
    script: [[call("leak", { to: `a ${key}` }), call("leak", { to: "nobody" })], say("ok")],
  });
  const open = listQuestions(await agent.run().result);
  expect(open.map(({ payload }) => (payload as { args: unknown }).args)).toEqual([
    { to: "a [redacted]" },
    { to: "nobody" },
  ]);
  const end = await agent.resume(Object.fromEntries(open.map(({ id }) => [id, true]))).result;
  expect(listAnswers(end)).toEqual([
    'key [redacted], ok{"type":"json","value":{"word":"[redacted]"}}',
    "!cannot use [redacted]",
  ]);
  const observed = agent.events.filter(({ type }) => type.startsWith("tool."));
  expect(observed.length).toBeGreaterThan(6);
  expect(observed.filter(containsSecret)).toEqual([]);
  expect(observed.filter((event) => JSON.stringify(event).includes("[redacted]")).length).toBeGreaterThan(5);
  // The text of the model stays in its message, because the provider needs it unchanged.
  expect(containsSecret(end.state.messages.filter(({ role }) => role === "tool"))).toBe(false);
});

const clean = async (text: string, options: Parameters<typeof redactSecrets>[0] = {}): Promise<string> => {
  const result = {
    callId: "c",
    name: "n",
    content: [{ type: "text" as const, text }],
    isError: false,
    attempts: 1,
    elapsedMs: 0,
  };
  const at = { call: { id: "c", name: "n", args: {} }, tool: undefined, result };
  const [block] = (await redactSecrets(options).afterTool?.(at, {} as never))?.content ?? [];
  return block?.type === "text" ? block.text : "";
};

test("redactSecrets redacts stored artifact text, except for tools that need the exact text, and leaves bytes", async () => {
  const given = { callId: "c", name: "n", content: [], isError: false, attempts: 1, elapsedMs: 0 };
  const body = `log ${key}`;
  const bytes = new Uint8Array([1, 2]);
  const draft = { name: `of ${key}`, mimeType: "text/plain" };
  const result = {
    ...given,
    drafts: [
      { ...draft, body },
      { ...draft, body, redact: false },
      { ...draft, body: bytes },
    ],
  };
  const at = { call: { id: "c", name: "n", args: {} }, tool: undefined, result };
  const cleaned = await redactSecrets().afterTool?.(at, {} as never);
  expect(cleaned?.drafts).toEqual([
    { ...draft, name: "of [redacted]", body: "log [redacted]" },
    { ...draft, name: "of [redacted]", body, redact: false },
    { ...draft, name: "of [redacted]", body: bytes },
  ]);
});

test("redactSecrets finds built-in and custom patterns anywhere in a text and ignores short matches", async () => {
  expect(await clean("a ghp_0123456789abcdefghij b")).toBe("a [redacted] b");
  expect(await clean("Authorization: Bearer abc.def+ghi/jkl=mno123")).toBe("Authorization: [redacted]");
  expect(await clean("sk-short and tasks-of-the-day")).toBe("sk-short and tasks-of-the-day");
  expect(await clean("acme_1234 acme_12", { patterns: [{ prefix: "acme_", minLength: 4 }], replacement: "*" })).toBe(
    "* acme_12",
  );
});

test("redactSecrets leaves no part of a secret text, whatever surrounds the secret", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ maxLength: 30 }),
      fc.string({ maxLength: 30 }),
      fc.stringMatching(/^[a-z#]{4,12}$/),
      async (before, after, text) => {
        expect(
          await clean(`${before}${text}${after}`, { texts: [text], replacement: "" }).then(
            (shown) => shown.includes(text) && !`${before}${after}`.includes(text[0] ?? ""),
          ),
        ).toBe(false);
      },
    ),
    { seed: 7 },
  );
});

test("redactSecrets scans millions of characters that resemble secrets in linear time", async () => {
  const short = "sk-0123 ".repeat(400_000);
  expect((await clean(short)) === short).toBe(true);
  expect(await clean("sk-".repeat(1_000_000))).toBe("[redacted]");
  const almost = "acme_".repeat(50).concat(" ").repeat(10_000);
  expect((await clean(almost, { patterns: [{ prefix: "acme_", minLength: 256 }] })) === almost).toBe(true);
});

test("redactSecrets refuses invalid texts and patterns", () => {
  for (const options of [
    { texts: ["abc"] },
    { patterns: [{ prefix: "", minLength: 3 }] },
    { patterns: [{ prefix: "ab", minLength: 1_000 }] },
  ])
    expect(() => redactSecrets(options)).toThrow(/invalid_option/);
});
