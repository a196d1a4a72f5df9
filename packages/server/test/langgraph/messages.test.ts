/** Messages of Statewright and of LangChain: every row of the table in docs/langgraph-sdk.md, and whole messages. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { ContentBlock, Message } from "@statewright/core";
import { describe, expect, test } from "vitest";
import { parseGivenMessages, toAnyMessage } from "../../src/langgraph/parse-wire-message.ts";
import { toWireMessage } from "../../src/langgraph/to-wire-message.ts";
import { toWireValues } from "../../src/langgraph/to-wire-values.ts";

interface Row {
  readonly ours: Message;
  readonly wire: unknown;
  readonly isReadBack: boolean;
}

/** Rows of the table of messages: a message, the message on the wire, and whether a client may write it. */
function readRows(): readonly Row[] {
  const page = readFileSync(fileURLToPath(new URL("../../../../docs/langgraph-sdk.md", import.meta.url)), "utf8");
  const table = page.slice(page.indexOf("| message | on the wire |"));
  const rows = table.split("\n").filter((line) => line.startsWith("| `{"));
  return rows.map((line) => {
    const [, ours = "", wire = "", back = ""] = line.split("|").map((cell) => cell.trim());
    return { ours: JSON.parse(ours.slice(1, -1)), wire: JSON.parse(wire.slice(1, -1)), isReadBack: back === "yes" };
  });
}

const rows = readRows();

describe("the table of messages", () => {
  test("the page has a row for each role and each kind of block", () => {
    const kinds = rows.flatMap(({ ours }) =>
      typeof ours.content === "string" ? [] : ours.content.map(({ type }: { readonly type: string }) => type),
    );
    expect([...new Set(kinds)].sort()).toEqual(["artifact", "call", "file", "image", "json", "reasoning", "text"]);
    expect(new Set(rows.map(({ ours }) => ours.role))).toEqual(new Set(["system", "user", "assistant", "tool"]));
  });

  test.each(rows.map((row) => [JSON.stringify(row.ours).slice(0, 90), row] as const))(
    "a row of the table is converted as the page says: %s [V39, V49]",
    (_, { ours, wire, isReadBack }) => {
      expect(toWireMessage(ours)).toMatchObject(Object(wire));
      if (!isReadBack) return;
      const [given] = parseGivenMessages([wire], "/messages");
      expect(given === undefined ? undefined : toAnyMessage(ours.id, given, "/messages/0")).toEqual(ours);
    },
  );
});

describe("messages of clients", () => {
  const read = (content: unknown): unknown => {
    const [given] = parseGivenMessages([{ role: "user", id: "u", content }], "/messages");
    return given === undefined ? undefined : toAnyMessage("u", given, "/messages/0").content;
  };

  test("an image of a client is read from base64, a data URL or a URL, which the server does not fetch [V39]", () => {
    expect(read([{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }])).toEqual([
      { type: "image", mimeType: "image/png", data: "AAAA" },
    ]);
    expect(read([{ type: "image", source_type: "base64", mime_type: "image/png", data: "AAAA" }])).toEqual([
      { type: "image", mimeType: "image/png", data: "AAAA" },
    ]);
    expect(read([{ type: "image_url", image_url: "https://files.example/a.png" }])).toEqual([
      { type: "image", mimeType: "image/*", url: "https://files.example/a.png" },
    ]);
  });

  test.each([
    ["a file URL", [{ type: "image_url", image_url: "file:///etc/passwd" }]],
    ["a block of an unknown type", [{ type: "video_stream", url: "x" }]],
    ["a file without a type", [{ type: "file", data: "AAAA" }]],
    ["content that is a number", 7],
  ])("%s in a message is refused with its place [V39]", (_, content) => {
    expect(() => read(content)).toThrow(/^\/messages\/0\/content/);
  });

  test("a text, a pair and a serialized class instance are messages of the user [V49]", () => {
    const roles = (value: unknown): unknown =>
      parseGivenMessages(value, "").map(({ role, fields }) => [role, fields["content"]]);
    expect(roles("hi")).toEqual([["user", "hi"]]);
    expect(roles([["human", "hi"]])).toEqual([["user", "hi"]]);
    const serialized = {
      lc: 1,
      type: "constructor",
      id: ["langchain_core", "messages", "HumanMessage"],
      kwargs: { content: "hi" },
    };
    expect(roles([serialized])).toEqual([["user", "hi"]]);
    expect(roles({ type: "remove", id: "m1" })).toEqual([["remove", undefined]]);
  });

  test("values keep channels without messages as they are, and convert lists of messages [V49]", () => {
    const messages: readonly Message[] = [{ role: "user", id: "u1", content: [{ type: "text", text: "Hi" }] }];
    const values = toWireValues({ messages, notes: ["a"], nothing: [], count: 1 });
    expect(values).toMatchObject({
      messages: [{ type: "human", id: "u1", content: "Hi" }],
      notes: ["a"],
      nothing: [],
      count: 1,
    });
  });

  test("a file that was uploaded to a provider is shown without its id [V39]", () => {
    const block: ContentBlock = { type: "file", mimeType: "application/pdf", uploaded: { openai: "file-secret" } };
    const wire = toWireMessage({ role: "tool", id: "t", callId: "c", name: "n", content: [block], isError: false });
    expect(JSON.stringify(wire)).not.toContain("file-secret");
    expect(wire.content).toEqual([{ type: "file", mimeType: "application/pdf" }]);
  });
});
